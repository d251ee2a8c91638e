// Package milvus holds what a lab instance has of Milvus itself: session keys
// and the metadata that proves an instance exists. Milvus does not run here.
package milvus

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// MetaRoot is the root of Milvus's metadata below its etcd root.
func MetaRoot(root string) string { return path.Join(root, "meta") }

// SessionKey is the key of a session; id 0 is an exclusive coordinator, whose
// key is the role alone.
func SessionKey(root, role string, id int64) string {
	name := role
	if id != 0 {
		name += "-" + strconv.FormatInt(id, 10)
	}
	return path.Join(MetaRoot(root), "session", name)
}

// SplitSessionName takes ROLE or ROLE-ID apart.
func SplitSessionName(name string) (role string, id int64, err error) {
	role, number, found := strings.Cut(name, "-")
	if role == "" {
		return "", 0, fmt.Errorf("session %q: want ROLE or ROLE-ID", name)
	}
	if !found {
		return role, 0, nil
	}
	if id, err = strconv.ParseInt(number, 10, 64); err != nil || id < 1 {
		return "", 0, fmt.Errorf("session %q: want a positive number after the role", name)
	}
	return role, id, nil
}

// session has the fields of Milvus 2.6's session JSON.
type session struct {
	ServerID                 int64
	ServerName               string
	Address                  string
	Exclusive                bool
	Stopping                 bool
	TriggerKill              bool
	Version                  string
	IndexEngineVersion       struct{ MinimalIndexVersion, CurrentIndexVersion int }
	ScalarIndexEngineVersion struct{ MinimalIndexVersion, CurrentIndexVersion int }
	IndexNonEncoding         bool
	LeaseID                  *int64
	HostName                 string
	EnableDisk               bool
	ServerLabels             map[string]string
}

var sessionPorts = map[string]int{
	"proxy": 19530, "mixcoord": 53100, "rootcoord": 53100, "querynode": 21123, "datanode": 21124, "streamingnode": 22222,
}

// SessionValue is the JSON that the role would register.
func SessionValue(role string, id, lease int64) (string, error) {
	port, ok := sessionPorts[role]
	if !ok {
		port = 19529
	}
	s := session{
		ServerID: max(id, 1), ServerName: role, Address: fmt.Sprintf("127.0.0.1:%d", port),
		Exclusive: id == 0, TriggerKill: true, Version: "2.6.15", LeaseID: &lease,
		HostName: "milvus-" + role + "-0", ServerLabels: map[string]string{},
	}
	if role == "querynode" {
		s.ServerLabels["QUERYNODE_STREAMING-EMBEDDED"] = "1"
	}
	raw, err := json.Marshal(s)
	return string(raw), err
}
