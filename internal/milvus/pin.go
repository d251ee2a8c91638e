package milvus

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Override is one setting that an instance keeps in etcd, below {root}/config/.
// There it beats the environment and every file.
type Override struct {
	Key         string // full etcd key
	Name        string // as Milvus compares names: lower case, without "/", "_" and "."
	Value       string
	ModRevision int64
}

// The names of the overrides that concern the WAL and where its metadata lies.
const (
	pinName       = "mqtype"
	metastoreName = "metastoretype"
)

// Overrides is what an instance keeps below {root}/config/.
type Overrides []Override

// ReadOverrides reads them. root is Milvus's etcd.rootPath.
func ReadOverrides(ctx context.Context, view View, root string) (Overrides, error) {
	prefix := root + "/config/"
	var all Overrides
	for kv, err := range view.Entries(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(string(kv.Key), prefix)
		all = append(all, Override{
			Key:  string(kv.Key),
			Name: formatKey(name),
			// Read verbatim: Milvus does not trim it.
			Value: string(kv.Value), ModRevision: kv.ModRevision,
		})
	}
	return all, nil
}

// PinKey is where Milvus 2.6 (newer) and 3.0 write down mq.type at the first
// start of a coordinator; from then on a change of milvus.yaml has no effect.
func PinKey(root string) string { return root + "/config/" + pinName }

// Pin is that setting, nil when this instance has none.
func (o Overrides) Pin(root string) *Override {
	for i := range o {
		if o[i].Key == PinKey(root) {
			return &o[i]
		}
	}
	return nil
}

// PinAliases are other spellings of the same setting, put there by hand; which
// spelling Milvus obeys is not defined.
func (o Overrides) PinAliases(root string) Overrides {
	var aliases Overrides
	for _, override := range o {
		if override.Name == pinName && override.Key != PinKey(root) {
			aliases = append(aliases, override)
		}
	}
	return aliases
}

// Metastore is metastore.type if it is set in etcd, else empty.
func (o Overrides) Metastore() string {
	for _, override := range o {
		if override.Name == metastoreName {
			return override.Value
		}
	}
	return ""
}

// ReadPin reads the pin alone: the WAL's name as stored, "" when there is no pin.
func ReadPin(ctx context.Context, client clientv3.KV, root string) (string, error) {
	resp, err := client.Get(ctx, PinKey(root))
	if err != nil || len(resp.Kvs) == 0 {
		return "", err
	}
	return string(resp.Kvs[0].Value), nil
}
