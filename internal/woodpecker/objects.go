package woodpecker

import (
	"strconv"
	"strings"
)

// ObjectName is a name of the layout
//
//	{root}/{logId}/{segmentId}/{N.blk | m_N.blk | footer.blk | write.lock}
//
// N.blk are blocks as an embedded woodpecker writes them (also the 1-byte block
// that fences a segment), m_N.blk blocks after compaction, footer.blk ends a
// segment, write.lock keeps a second writer out. root is woodpecker's
// minio.rootPath, to the letter: with "root/" a name really is "root//7/0/0.blk".
type ObjectName struct {
	LogID, Segment int64
	File           string
}

// ObjectPrefix is the prefix of all objects below root, with its slash.
func ObjectPrefix(root string) string { return root + "/" }

// LogObjectPrefix is the prefix of one log's objects, with its slash.
func LogObjectPrefix(root string, id int64) string {
	return ObjectPrefix(root) + strconv.FormatInt(id, 10) + "/"
}

// ParseObject reads an object's name. Whatever does not match the layout
// exactly, placeholders of directories too, is not woodpecker's.
func ParseObject(root, key string) (ObjectName, bool) {
	rest, ok := strings.CutPrefix(key, ObjectPrefix(root))
	if !ok {
		return ObjectName{}, false
	}
	log, rest, _ := strings.Cut(rest, "/")
	segment, file, _ := strings.Cut(rest, "/")
	id, okLog := parseLogID(log)
	n, okSegment := parseNumber(segment)
	if !okLog || !okSegment || !isObjectFile(file) {
		return ObjectName{}, false
	}
	return ObjectName{LogID: id, Segment: n, File: file}, true
}

// ParseLogDir reads the id out of "{root}/{logId}/".
func ParseLogDir(root, dir string) (int64, bool) {
	rest, ok := strings.CutPrefix(dir, ObjectPrefix(root))
	if !ok {
		return 0, false
	}
	name, ok := strings.CutSuffix(rest, "/")
	if !ok {
		return 0, false
	}
	return parseLogID(name)
}

func isObjectFile(name string) bool {
	if name == "footer.blk" || name == "write.lock" {
		return true
	}
	n, ok := strings.CutSuffix(name, ".blk")
	if !ok {
		return false
	}
	_, ok = parseNumber(strings.TrimPrefix(n, "m_"))
	return ok
}

// parseLogID reads the id of a log, which is at least 1.
func parseLogID(text string) (int64, bool) {
	id, ok := parseNumber(text)
	return id, ok && id > 0
}
