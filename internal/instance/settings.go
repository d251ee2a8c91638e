package instance

import (
	"runbook/internal/secret"
)

// Settings is the instance section of a plan: where one Milvus keeps its things.
// Paths are used verbatim: what Milvus wrote under "root//" is not under "root/".
type Settings struct {
	Etcd          Etcd          `json:"etcd" doc:"the etcd that holds Milvus's and woodpecker's metadata" required:"unless milvusConfig"`
	ObjectStorage ObjectStorage `json:"objectStorage" doc:"the S3-compatible store" required:"unless milvusConfig"`
	WAL           WAL           `json:"wal" doc:"the write-ahead log to reset"`
	Kubernetes    *Kubernetes   `json:"kubernetes,omitempty" doc:"the release that this Milvus is, when it runs in Kubernetes"`
	MilvusConfig  *MilvusConfig `json:"milvusConfig,omitempty" doc:"take what this section does not give from Milvus's own configuration"`

	given []string // the fields that the plan gave; nil: not from a plan
}

// Etcd mirrors milvus.yaml's etcd section.
type Etcd struct {
	Endpoints   []string     `json:"endpoints" doc:"host:port of each member" required:"unless milvusConfig"`
	RootPath    string       `json:"rootPath" doc:"Milvus's etcd.rootPath" default:"by-dev"`
	MetaSubPath string       `json:"metaSubPath" doc:"Milvus's etcd.metaSubPath" default:"meta"`
	Username    string       `json:"username" doc:"etcd user, when authentication is on"`
	Password    secret.Value `json:"password" doc:"etcd password"`
	TLS         *TLS         `json:"tls" doc:"TLS to etcd; absent: plain text"`
}

// TLS names the files of a TLS client.
type TLS struct {
	CACert     string `json:"caCert" doc:"path of the CA certificate (PEM); empty: the system's"`
	Cert       string `json:"cert" doc:"path of the client certificate (PEM)"`
	Key        string `json:"key" doc:"path of the client key (PEM)"`
	ServerName string `json:"serverName" doc:"name expected in the server's certificate"`
}

// ObjectStorage mirrors milvus.yaml's minio section.
type ObjectStorage struct {
	Endpoint        string       `json:"endpoint" doc:"host:port, without scheme" required:"unless milvusConfig"`
	Bucket          string       `json:"bucket" doc:"Milvus's minio.bucketName" default:"a-bucket"`
	RootPath        string       `json:"rootPath" doc:"Milvus's minio.rootPath, verbatim; woodpecker's own root, {rootPath}/wp, is derived" default:"files"`
	AccessKeyID     secret.Value `json:"accessKeyID" doc:"access key id"`
	SecretAccessKey secret.Value `json:"secretAccessKey" doc:"secret access key"`
	Secure          bool         `json:"secure" doc:"use TLS (Milvus's minio.useSSL)" default:"false"`
	CACert          string       `json:"caCert" doc:"path of the CA certificate (PEM) of the store"`
	Region          string       `json:"region" doc:"region of the bucket; empty: asked from the store"`
	VirtualHost     bool         `json:"virtualHost" doc:"address the bucket as a host name" default:"false"`
}

// WAL says which write-ahead log the instance uses and how to reach it.
type WAL struct {
	Type        string   `json:"type" doc:"the kind of WAL" default:"woodpecker" enum:"woodpecker,pulsar,kafka,rocksmq"`
	StorageType string   `json:"storageType" doc:"Milvus's woodpecker.storage.type" default:"service" enum:"service,minio,local"`
	MetaPrefix  string   `json:"metaPrefix" doc:"where woodpecker's metadata lies: auto, a name under etcd.rootPath, or /name for a top-level prefix" default:"auto"`
	NodeSeeds   []string `json:"nodeSeeds" doc:"host:port of log-store nodes, besides those found in the metadata"`
	LocalPath   string   `json:"localPath" doc:"Milvus's woodpecker.storage.rootPath as reachable from here; storageType local only"`
}

// Kubernetes names a Milvus release and the cluster that it runs in.
type Kubernetes struct {
	Namespace   string `json:"namespace" doc:"namespace of the release; empty: the kubeconfig context's"`
	Release     string `json:"release" doc:"Helm release, or name of the Milvus custom resource"`
	Selector    string `json:"selector" doc:"label selector of Milvus's workloads and pods, instead of the usual labels"`
	Layout      string `json:"layout" doc:"who made the release: its Helm chart or milvus-operator; auto: the objects tell" default:"auto" enum:"auto,chart,operator"`
	Kubeconfig  string `json:"kubeconfig" doc:"path; empty: $KUBECONFIG or ~/.kube/config, inside a pod its service account"`
	Context     string `json:"context" doc:"context of the kubeconfig; empty: the current one"`
	PortForward bool   `json:"portForward" doc:"reach etcd, object store and log-store nodes through the Kubernetes API, by the addresses that pods use" default:"false"`
}

// MilvusConfig says where Milvus's own configuration is. What the plan gives wins
// over it, and it wins over the defaults of the plan language.
type MilvusConfig struct {
	Files     []string          `json:"files" doc:"paths of milvus.yaml, default.yaml, user.yaml: the name decides which one wins, as in milvus"`
	Env       map[string]string `json:"env" doc:"environment of a milvus process, without credentials; this command's own never counts"`
	ConfigMap bool              `json:"configMap" doc:"read files and environment from the release in Kubernetes" default:"false"`
}

// SetGiven tells which fields the plan gave; the plan language calls it.
func (s *Settings) SetGiven(fields []string) { s.given = fields }

// MetaRoot is {rootPath}/{metaSubPath}, where Milvus keeps its metadata.
func (s Settings) MetaRoot() string { return joinPath(s.Etcd.RootPath, s.Etcd.MetaSubPath) }

// WALObjectRoot is the prefix of woodpecker's objects without the last slash:
// Milvus sets {minio.rootPath}/wp and woodpecker uses it verbatim.
func (s Settings) WALObjectRoot() string { return s.ObjectStorage.RootPath + "/wp" }
