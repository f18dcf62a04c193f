package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"time"
)

// epoch is the time of every file of a release: the first that a zip file can
// state.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// entry is a file of an archive, or a folder if the name ends with a slash.
type entry struct {
	name    string
	mode    int64
	owner   int // number of the user and the group
	content []byte
}

// archive writes a target's program with what belongs to it, in a folder.
func (r *release) archive(t target, program, notices []byte) error {
	name := "weir-" + r.version + "-" + t.os + "-" + t.arch
	entries := []entry{{name: name + "/", mode: 0o755}, {name: name + "/" + t.program(), mode: 0o755, content: program}}
	from := []string{"LICENSE", "NOTICE", "deploy/README.txt"}
	if t.os == "linux" {
		from = append(from, "deploy/weir.service", "deploy/weir.socket")
	}
	for _, file := range from {
		content, err := os.ReadFile(filepath.Join(r.root, file))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: name + "/" + filepath.Base(file), mode: 0o644, content: content})
	}
	entries = append(entries, entry{name: name + "/THIRD-PARTY.txt", mode: 0o644, content: notices})
	if t.os == "windows" {
		b, err := zipped(entries)
		if err != nil {
			return err
		}
		return r.write(name+".zip", b)
	}
	b, err := tarred(entries)
	if err != nil {
		return err
	}
	if b, err = gzipped(b); err != nil {
		return err
	}
	return r.write(name+".tar.gz", b)
}

// tarred returns a tar file of entries, in their order.
func tarred(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner,
			Gid: e.owner, ModTime: epoch, Size: int64(len(e.content))}
		if e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// gzipped returns the compressed form, without a name or a time.
func gzipped(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func zipped(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Modified: epoch, Method: zip.Deflate}
		h.SetMode(os.FileMode(e.mode))
		if e.name[len(e.name)-1] == '/' {
			h.SetMode(os.ModeDir | os.FileMode(e.mode))
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
