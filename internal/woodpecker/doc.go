// Package woodpecker knows woodpecker's layout and protocol: the etcd keys of its
// metadata, the names of its objects and local files, and the few calls to its
// log-store nodes that read or mark. Every one of them is spelled here and
// nowhere else; nothing here decides what is to be done to a WAL.
//
// Source: woodpecker v0.1.37, of which only the packages meta and proto are
// linked (its servers and clients are under other licences). Where later
// versions differ, the difference is named.
//
// Words: a log has a name (Milvus: the physical channel) and an id, counted up
// from 1 by the log id counter and never used again; a log consists of segments,
// numbered from 0; a segment's quorum names the log-store nodes that hold it.
package woodpecker
