package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

// A before-image is what a step found before it changed anything: zstd frames,
// then one skippable zstd frame that holds the length and the SHA-256 of all
// bytes before it. `zstd -d` reads the file as it is.
const (
	imageSuffix    = ".before.zst"
	skippableMagic = 0x184D2A5E
	sealPayload    = 8 + sha256.Size
	sealSize       = 4 + 4 + sealPayload
)

// Image is one before-image on disk.
type Image struct {
	Step string // id of the step that wrote it
	Path string
}

// ImageWriter receives a before-image. It is not there until Commit returns nil.
type ImageWriter struct {
	step   string
	path   string
	file   *os.File
	sum    hash.Hash
	length int64
	frames *zstd.Encoder
}

// BeforeImage starts the before-image of a step; write to it, then Commit, and
// only then change anything. A step has one before-image in a run.
func (r *Run) BeforeImage(stepID string) (*ImageWriter, error) {
	path := filepath.Join(r.dir, stepID+imageSuffix)
	if _, err := os.Lstat(path); err == nil {
		return nil, fault.Fail("journal.image-exists", "this step has a before-image in this run already").At(path)
	}
	file, err := os.OpenFile(path+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, filePerm)
	if err != nil {
		return nil, writeError(path, err)
	}
	w := &ImageWriter{step: stepID, path: path, file: file, sum: sha256.New()}
	w.frames, err = zstd.NewWriter(countingWriter{w}, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(writeError(path, err), file.Close())
	}
	return w, nil
}

// countingWriter is the encoder's view of the file.
type countingWriter struct{ w *ImageWriter }

func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.file.Write(p)
	c.w.sum.Write(p[:n])
	c.w.length += int64(n)
	return n, err
}

// Write appends to the image.
func (w *ImageWriter) Write(p []byte) (int, error) {
	n, err := w.frames.Write(p)
	if err != nil {
		err = writeError(w.path, err)
	}
	return n, err
}

// Commit seals the image and makes it durable under its final name. After an
// error there is no image, and nothing may be changed.
func (w *ImageWriter) Commit() error {
	err := w.seal()
	if err != nil {
		w.Abort()
		return writeError(w.path, err)
	}
	if err := os.Rename(w.path+".part", w.path); err != nil {
		return writeError(w.path, err)
	}
	if err := syncDir(filepath.Dir(w.path)); err != nil {
		return writeError(w.path, err)
	}
	failpoint.Hit("journal/before-image-written")
	return nil
}

// Image is what was committed.
func (w *ImageWriter) Image() *Image { return &Image{Step: w.step, Path: w.path} }

func (w *ImageWriter) seal() error {
	if err := w.frames.Close(); err != nil {
		return err
	}
	seal := binary.LittleEndian.AppendUint32(nil, skippableMagic)
	seal = binary.LittleEndian.AppendUint32(seal, sealPayload)
	seal = binary.LittleEndian.AppendUint64(seal, uint64(w.length))
	seal = w.sum.Sum(seal)
	if _, err := w.file.Write(seal); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	return w.file.Close()
}

// Abort drops what was written; after Commit it does nothing.
func (w *ImageWriter) Abort() {
	w.file.Close()
	os.Remove(w.path + ".part")
}

// Open verifies the whole file against its seal and then reads the content.
// A file cut short, or changed by one bit, is an error before the first byte.
func (i *Image) Open() (io.ReadCloser, error) {
	file, err := os.Open(i.Path)
	if err != nil {
		return nil, fault.Fail("journal.image", "before-image cannot be read").At(i.Path).Because(err)
	}
	length, err := verifySeal(file)
	if err != nil {
		file.Close()
		return nil, fault.Fail("journal.image-damaged", "before-image is damaged: %s", err).At(i.Path).
			Hint("restore this file from a backup of the state directory; nothing was read from it")
	}
	frames, err := zstd.NewReader(io.NewSectionReader(file, 0, length), zstd.WithDecoderConcurrency(1))
	if err != nil {
		file.Close()
		return nil, fault.Fail("journal.image", "before-image cannot be read").At(i.Path).Because(err)
	}
	return &imageReader{Decoder: frames, file: file}, nil
}

type imageReader struct {
	*zstd.Decoder
	file *os.File
}

func (r *imageReader) Close() error {
	r.Decoder.Close()
	return r.file.Close()
}

// verifySeal returns how many bytes the seal covers.
func verifySeal(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	length := info.Size() - sealSize
	if length < 0 {
		return 0, errors.New("too short to hold a checksum")
	}
	seal := make([]byte, sealSize)
	if _, err := file.ReadAt(seal, length); err != nil {
		return 0, err
	}
	if binary.LittleEndian.Uint32(seal) != skippableMagic || binary.LittleEndian.Uint32(seal[4:]) != sealPayload {
		return 0, errors.New("no checksum at its end: it was cut short or never finished")
	}
	if recorded := int64(binary.LittleEndian.Uint64(seal[8:])); recorded != length {
		return 0, errors.New("its length is not the length recorded")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, length)); err != nil {
		return 0, err
	}
	if !bytes.Equal(sum.Sum(nil), seal[16:]) {
		return 0, errors.New("its checksum does not match its content")
	}
	return length, nil
}
