// Package milvus knows how Milvus 2.6 and 3.0 lay out etcd and milvus.yaml: keys,
// sessions, positions, the WAL pin, settings. Every key of Milvus is spelled here
// and nowhere else; nothing here decides what to do with one.
//
// Keys have no leading slash. {root} is Milvus's etcd.rootPath (default by-dev),
// {meta} is {root}/{etcd.metaSubPath} (default by-dev/meta).
package milvus
