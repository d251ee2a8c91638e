package plan_test

import (
	"reflect"
	"testing"
	"time"

	"runbook/internal/plan"
	"runbook/internal/secret"
)

// The language of these tests: the shape of the real one, with every type of
// field, small enough to be read beside the plans in testdata.

type none struct{}

type settings struct {
	Etcd    etcdSection       `json:"etcd" doc:"the etcd" required:"true"`
	Objects objects           `json:"objectStorage" doc:"the object store" required:"true"`
	WAL     walSection        `json:"wal" doc:"the write-ahead log"`
	Labels  map[string]string `json:"labels" doc:"labels"`
}

type etcdSection struct {
	Endpoints []string     `json:"endpoints" doc:"host:port of each member" required:"true"`
	RootPath  string       `json:"rootPath" doc:"etcd.rootPath" default:"by-dev"`
	Password  secret.Value `json:"password" doc:"etcd password"`
	TLS       *tlsSection  `json:"tls" doc:"TLS to etcd"`
}

type tlsSection struct {
	CACert     string `json:"caCert" doc:"path of the CA certificate" required:"true"`
	ServerName string `json:"serverName" doc:"name in the certificate" default:"etcd"`
}

type objects struct {
	Endpoint        string       `json:"endpoint" doc:"host:port" required:"true"`
	Bucket          string       `json:"bucket" doc:"minio.bucketName" default:"a-bucket"`
	AccessKeyID     secret.Value `json:"accessKeyID" doc:"access key id"`
	SecretAccessKey secret.Value `json:"secretAccessKey" doc:"secret access key"`
	Secure          bool         `json:"secure" doc:"use TLS" default:"false"`
}

type walSection struct {
	Type       string   `json:"type" doc:"the kind of WAL" default:"woodpecker" enum:"woodpecker,pulsar,kafka,rocksmq"`
	MetaPrefix string   `json:"metaPrefix" doc:"where the metadata lies" default:"auto"`
	NodeSeeds  []string `json:"nodeSeeds" doc:"host:port of nodes"`
}

type assertStoppedInputs struct {
	Settle time.Duration `json:"settle" doc:"how long to wait for leases" default:"35s"`
	Health []string      `json:"health" doc:"addresses that must not answer"`
}

type assertStoppedOutputs struct {
	Waited time.Duration `json:"waited" doc:"how long it took"`
}

type resetWalInputs struct {
	RaiseCounter bool   `json:"raiseCounter" doc:"raise the counter" default:"false"`
	NodeSweep    string `json:"nodeSweep" doc:"mark all ids" default:"auto" enum:"auto,always,never"`
	Parallel     int    `json:"parallel" doc:"logs at a time" default:"8"`
}

type resetWalOutputs struct {
	Removed      int64            `json:"removed" doc:"logs removed"`
	Skipped      []string         `json:"skippedNodes" doc:"nodes left out"`
	LogIDCounter counter          `json:"logIdCounter" doc:"the log id counter"`
	Prefix       string           `json:"metaPrefix" doc:"the prefix that was found"`
	Share        float64          `json:"share" doc:"share of objects that were ours"`
	Clean        bool             `json:"clean" doc:"nothing is left"`
	PerTier      map[string]int64 `json:"perTier" doc:"objects per tier"`
	Oldest       *time.Time       `json:"oldest" doc:"the oldest object"`
	Token        secret.Value     `json:"token"`
}

type counter struct {
	Before int64 `json:"before" doc:"before the reset"`
	After  int64 `json:"after" doc:"after the reset"`
}

type resetCheckpointInputs struct {
	TargetWAL    string `json:"targetWal" doc:"the WAL to start from" enum:"woodpecker,pulsar,kafka,rocksmq" required:"true"`
	AllowGrowing bool   `json:"allowGrowing" doc:"accept growing segments" default:"false"`
}

type startInputs struct {
	TargetWAL         string        `json:"targetWal" doc:"the WAL expected" enum:"woodpecker,pulsar,kafka,rocksmq"`
	LogIDCounterFloor int64         `json:"logIdCounterFloor" doc:"the first new log id is above it"`
	Timeout           time.Duration `json:"timeout" doc:"how long to wait" default:"5m"`
	Token             secret.Value  `json:"token" doc:"a token"`
	Note              string        `json:"note" doc:"a text"`
	Nodes             []string      `json:"nodes" doc:"nodes"`
}

func testLanguage() plan.Language {
	return plan.Language{
		Instance: reflect.TypeFor[settings](),
		Steps: []plan.StepType{
			{
				Name: "assertStopped", Summary: "nothing runs", Provides: []plan.Fact{plan.MilvusStopped},
				Inputs: reflect.TypeFor[assertStoppedInputs](), Outputs: reflect.TypeFor[assertStoppedOutputs](),
			},
			{
				Name: "resetWal", Summary: "the WAL is empty",
				Requires: []plan.Requirement{{Fact: plan.MilvusStopped}}, Provides: []plan.Fact{plan.WALEmpty},
				Inputs: reflect.TypeFor[resetWalInputs](), Outputs: reflect.TypeFor[resetWalOutputs](),
			},
			{
				Name: "resetCheckpoint", Summary: "positions are the target's earliest",
				Requires: []plan.Requirement{
					{Fact: plan.MilvusStopped},
					{Fact: plan.WALEmpty, When: "targetWal is woodpecker", If: func(in any) bool {
						return in.(resetCheckpointInputs).TargetWAL == "woodpecker"
					}},
				},
				Provides: []plan.Fact{plan.PositionsReset},
				Inputs:   reflect.TypeFor[resetCheckpointInputs](), Outputs: reflect.TypeFor[none](),
			},
			{
				Name: "start", Summary: "Milvus runs", Provides: []plan.Fact{plan.MilvusRunning},
				Inputs: reflect.TypeFor[startInputs](), Outputs: reflect.TypeFor[none](),
			},
		},
	}
}

func TestTheSchemaOfTheTestLanguageIsRendered(t *testing.T) {
	if _, err := plan.Schema(testLanguage()); err != nil {
		t.Fatal(err)
	}
}
