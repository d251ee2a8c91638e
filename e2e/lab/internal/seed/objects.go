package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"
)

// EnsureBucket creates the target's bucket where it is missing and lets the
// lab's two users in. lock makes a bucket whose objects can be held.
func (s *Seeder) EnsureBucket(ctx context.Context, lock bool) error {
	bucket := s.target.Bucket
	exists, err := s.objects.BucketExists(ctx, bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", bucket, err)
	}
	if !exists {
		if err := s.objects.MakeBucket(ctx, bucket, minio.MakeBucketOptions{ObjectLocking: lock}); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
		if s.lab.Settings.ObjectVersioning {
			if err := s.objects.EnableVersioning(ctx, bucket); err != nil {
				return fmt.Errorf("bucket %s: versioning: %w", bucket, err)
			}
		}
		return s.setPolicy(ctx, "")
	}
	if lock {
		if _, _, _, _, err := s.objects.GetObjectLockConfig(ctx, bucket); err != nil {
			return fmt.Errorf("bucket %s exists without object lock, which can only be set when it is created", bucket)
		}
	}
	return nil
}

// DenyDelete forbids the writer to delete below prefix; "" forbids nothing.
func (s *Seeder) DenyDelete(ctx context.Context, prefix string) error {
	return s.setPolicy(ctx, prefix)
}

type statement struct {
	Effect    string
	Principal map[string][]string
	Action    []string
	Resource  []string
}

func (s *Seeder) setPolicy(ctx context.Context, denied string) error {
	bucket := s.target.Bucket
	all, objects := "arn:aws:s3:::"+bucket, "arn:aws:s3:::"+bucket+"/"
	reader := map[string][]string{"AWS": {s.lab.Objects.Reader.Name}}
	writer := map[string][]string{"AWS": {s.lab.Objects.Writer.Name}}
	statements := []statement{
		{"Allow", reader, []string{"s3:ListBucket", "s3:GetBucketLocation", "s3:GetBucketVersioning", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"}, []string{all}},
		{"Allow", reader, []string{"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging"}, []string{objects + "*"}},
		{"Allow", writer, []string{"s3:*"}, []string{all, objects + "*"}},
	}
	if denied != "" {
		statements = append(statements, statement{"Deny", writer, []string{"s3:DeleteObject", "s3:DeleteObjectVersion"}, []string{objects + denied + "*"}})
	}
	policy, err := json.Marshal(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", statements})
	if err != nil {
		return err
	}
	if err := s.objects.SetBucketPolicy(ctx, bucket, string(policy)); err != nil {
		return fmt.Errorf("bucket %s: policy: %w", bucket, err)
	}
	return nil
}

func (s *Seeder) put(ctx context.Context, key, content string) error {
	_, err := s.objects.PutObject(ctx, s.target.Bucket, key, strings.NewReader(content), int64(len(content)), putOptions(len(content)))
	if err != nil {
		return fmt.Errorf("object %s: %w", key, err)
	}
	return nil
}

func (s *Seeder) moveObjects(ctx context.Context, prefix string, rename func(string) string) error {
	bucket := s.target.Bucket
	var keys []string
	for o := range s.objects.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return o.Err
		}
		keys = append(keys, o.Key)
	}
	for _, key := range keys {
		_, err := s.objects.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: rename(key)}, minio.CopySrcOptions{Bucket: bucket, Object: key})
		if err != nil {
			return fmt.Errorf("object %s to %s: %w", key, rename(key), err)
		}
		if err := s.removeAllVersions(ctx, key); err != nil {
			return fmt.Errorf("object %s: %w", key, err)
		}
	}
	return nil
}

// removeAllVersions leaves no trace of a key, in a versioned bucket either.
func (s *Seeder) removeAllVersions(ctx context.Context, key string) error {
	bucket := s.target.Bucket
	for o := range s.objects.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: key, Recursive: true, WithVersions: s.lab.Settings.ObjectVersioning}) {
		if o.Err != nil {
			return o.Err
		}
		if o.Key != key {
			continue
		}
		if err := s.objects.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{VersionID: o.VersionID}); err != nil {
			return err
		}
	}
	return nil
}

// putOptions: the client signs bodies in chunks, and an empty one then has more
// bytes than the length it announces.
func putOptions(size int) minio.PutObjectOptions {
	return minio.PutObjectOptions{DisableContentSha256: size == 0}
}
