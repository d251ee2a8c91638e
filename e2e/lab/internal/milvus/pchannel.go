package milvus

import (
	"path"
	"strconv"
)

// PChannel names physical channel n the way Milvus does.
func PChannel(root string, n int) string {
	return path.Base(root) + "-rootcoord-dml_" + strconv.Itoa(n)
}
