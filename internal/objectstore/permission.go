package objectstore

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// probeName is an object that nobody makes; asking to delete it changes nothing.
const probeName = ".runbook-delete-permission"

// MayDelete asks whether the credentials may delete below prefix, by deleting an
// object that does not exist. In a versioned bucket a version that does not
// exist is named, since a plain delete would leave a marker.
func (s *Store) MayDelete(ctx context.Context, prefix string) error {
	versioned, err := s.Versioned(ctx)
	if err != nil {
		return err
	}
	options := minio.RemoveObjectOptions{}
	if versioned {
		options.VersionID = "null"
	}
	if err := s.client.RemoveObject(ctx, s.bucket, prefix+probeName, options); err != nil {
		return s.explain("delete", prefix, err)
	}
	return nil
}
