package milvus

// settingDefault is one setting with what Milvus takes when nobody gives it: the
// value in its code, and the one in the image's milvus.yaml where that differs.
type settingDefault struct {
	key, code, image string
	secret           bool
}

// settings are those that say where an instance keeps its things and which WAL it
// uses (service_param.go, Milvus 2.6.7; milvus.yaml of the 2.6 image).
var settings = []settingDefault{
	{key: "etcd.endpoints", code: "localhost:2379"},
	{key: "etcd.rootPath", code: "by-dev"},
	{key: "etcd.metaSubPath", code: "meta"},
	{key: "etcd.use.embed", code: "false"},
	{key: "etcd.ssl.enabled", code: "false"},
	{key: "etcd.ssl.tlsCert"},
	{key: "etcd.ssl.tlsKey"},
	{key: "etcd.ssl.tlsCACert"},
	{key: "etcd.auth.enabled", code: "false"},
	{key: "etcd.auth.userName"},
	{key: "etcd.auth.password", secret: true},
	{key: "metastore.type", code: "etcd"},
	{key: "minio.address", image: "localhost"},
	{key: "minio.port", code: "9000"},
	{key: "minio.accessKeyID", code: "minioadmin", secret: true},
	{key: "minio.secretAccessKey", code: "minioadmin", secret: true},
	{key: "minio.useSSL", code: "false"},
	{key: "minio.ssl.tlsCACert"},
	{key: "minio.bucketName", code: "a-bucket"},
	{key: "minio.rootPath", image: "files"},
	{key: "minio.useIAM", code: "false"},
	{key: "minio.cloudProvider", code: "aws"},
	{key: "minio.region"},
	{key: "minio.useVirtualHost", code: "false"},
	{key: "mq.type", code: "default"},
	{key: "woodpecker.meta.type", code: "etcd"},
	{key: "woodpecker.meta.prefix", code: "woodpecker"},
	{key: "woodpecker.storage.type", code: "minio"},
	{key: "woodpecker.storage.rootPath", code: "default"},
}
