package servers

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3response"
)

// verbatimKeys makes a file system keep keys apart as S3 does: there files//wp
// and files/wp are two names, and a key may begin with a slash. A Milvus whose
// minio.rootPath is empty or ends in a slash writes such keys. Empty elements
// are stored as a directory of their own; all else passes through.
type verbatimKeys struct{ backend.Backend }

// emptyElement sorts before whatever may follow a slash, as an empty one does.
const emptyElement = "\x01"

func toDisk(key string) string {
	if strings.HasPrefix(key, "/") {
		key = emptyElement + key
	}
	for strings.Contains(key, "//") {
		key = strings.Replace(key, "//", "/"+emptyElement+"/", 1)
	}
	return key
}

func fromDisk(key string) string {
	if strings.HasPrefix(key, emptyElement+"/") {
		key = strings.TrimPrefix(key, emptyElement)
	}
	for strings.Contains(key, "/"+emptyElement+"/") {
		key = strings.Replace(key, "/"+emptyElement+"/", "//", 1)
	}
	return key
}

func toDiskPtr(key *string) *string {
	if key == nil {
		return nil
	}
	disk := toDisk(*key)
	return &disk
}

func fromDiskPtr(key *string) *string {
	if key == nil {
		return nil
	}
	name := fromDisk(*key)
	return &name
}

func (b verbatimKeys) NormalizeObjectKey(bucket, key string) string {
	return fromDisk(b.Backend.NormalizeObjectKey(bucket, toDisk(key)))
}

func (b verbatimKeys) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	in.Key = toDiskPtr(in.Key)
	return b.Backend.PutObject(ctx, in)
}

func (b verbatimKeys) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	in.Key = toDiskPtr(in.Key)
	return b.Backend.HeadObject(ctx, in)
}

func (b verbatimKeys) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	in.Key = toDiskPtr(in.Key)
	return b.Backend.GetObject(ctx, in)
}

func (b verbatimKeys) GetObjectAttributes(ctx context.Context, in *s3.GetObjectAttributesInput) (s3response.GetObjectAttributesResponse, error) {
	in.Key = toDiskPtr(in.Key)
	return b.Backend.GetObjectAttributes(ctx, in)
}

func (b verbatimKeys) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	in.Key = toDiskPtr(in.Key)
	if in.CopySource != nil {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(*in.CopySource, "/"), "/")
		source := bucket + "/" + toDisk(key)
		in.CopySource = &source
	}
	return b.Backend.CopyObject(ctx, in)
}

func (b verbatimKeys) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	in.Key = toDiskPtr(in.Key)
	return b.Backend.DeleteObject(ctx, in)
}

func (b verbatimKeys) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	if in.Delete != nil {
		for i := range in.Delete.Objects {
			in.Delete.Objects[i].Key = toDiskPtr(in.Delete.Objects[i].Key)
		}
	}
	out, err := b.Backend.DeleteObjects(ctx, in)
	for i := range out.Deleted {
		out.Deleted[i].Key = fromDiskPtr(out.Deleted[i].Key)
	}
	for i := range out.Error {
		out.Error[i].Key = fromDiskPtr(out.Error[i].Key)
	}
	return out, err
}

func (b verbatimKeys) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (s3response.ListObjectsResult, error) {
	in.Prefix, in.Marker = toDiskPtr(in.Prefix), toDiskPtr(in.Marker)
	out, err := b.Backend.ListObjects(ctx, in)
	for _, key := range []**string{&out.Prefix, &out.Marker, &out.NextMarker} {
		*key = fromDiskPtr(*key)
	}
	renameListed(out.Contents, out.CommonPrefixes)
	return out, err
}

func (b verbatimKeys) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	in.Prefix, in.StartAfter, in.ContinuationToken = toDiskPtr(in.Prefix), toDiskPtr(in.StartAfter), toDiskPtr(in.ContinuationToken)
	out, err := b.Backend.ListObjectsV2(ctx, in)
	for _, key := range []**string{&out.Prefix, &out.StartAfter, &out.ContinuationToken, &out.NextContinuationToken} {
		*key = fromDiskPtr(*key)
	}
	renameListed(out.Contents, out.CommonPrefixes)
	return out, err
}

func renameListed(objects []s3response.Object, prefixes []types.CommonPrefix) {
	for i := range objects {
		objects[i].Key = fromDiskPtr(objects[i].Key)
	}
	for i := range prefixes {
		prefixes[i].Prefix = fromDiskPtr(prefixes[i].Prefix)
	}
}

func (b verbatimKeys) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput) (s3response.ListVersionsResult, error) {
	in.Prefix, in.KeyMarker = toDiskPtr(in.Prefix), toDiskPtr(in.KeyMarker)
	out, err := b.Backend.ListObjectVersions(ctx, in)
	for _, key := range []**string{&out.Prefix, &out.KeyMarker, &out.NextKeyMarker} {
		*key = fromDiskPtr(*key)
	}
	for i := range out.Versions {
		out.Versions[i].Key = fromDiskPtr(out.Versions[i].Key)
	}
	for i := range out.DeleteMarkers {
		out.DeleteMarkers[i].Key = fromDiskPtr(out.DeleteMarkers[i].Key)
	}
	renameListed(nil, out.CommonPrefixes)
	return out, err
}

func (b verbatimKeys) PutObjectRetention(ctx context.Context, bucket, key, version string, retention []byte) error {
	return b.Backend.PutObjectRetention(ctx, bucket, toDisk(key), version, retention)
}

func (b verbatimKeys) GetObjectRetention(ctx context.Context, bucket, key, version string) ([]byte, error) {
	return b.Backend.GetObjectRetention(ctx, bucket, toDisk(key), version)
}

func (b verbatimKeys) PutObjectLegalHold(ctx context.Context, bucket, key, version string, on bool) error {
	return b.Backend.PutObjectLegalHold(ctx, bucket, toDisk(key), version, on)
}

func (b verbatimKeys) GetObjectLegalHold(ctx context.Context, bucket, key, version string) (*bool, error) {
	return b.Backend.GetObjectLegalHold(ctx, bucket, toDisk(key), version)
}
