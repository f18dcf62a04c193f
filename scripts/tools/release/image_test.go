package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// image is what an image layout contains for one platform.
type image struct {
	platform ociPlatform
	config   imageConfig
	layer    []byte // tar file
}

func hostTarget() target { return target{"linux", runtime.GOARCH} }

// platformTar returns the name of the image for this computer's platform.
func platformTar() string { return "weir-" + version + "-image-" + runtime.GOARCH + ".tar" }

// tarFiles returns the content of a tar file's files by their names.
func tarFiles(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for a := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := a.Next()
		if err == io.EOF {
			return files
		}
		if err == nil {
			files[h.Name], err = io.ReadAll(a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// blob returns the blob of a descriptor, whose digest and size it checks, and
// decodes it into v if that is not nil.
func blob(t *testing.T, files map[string][]byte, d descriptor, v any) []byte {
	t.Helper()
	content, ok := files[blobPath(d)]
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); !ok || sum != d.Digest || len(content) != d.Size {
		t.Fatalf("%s of %d bytes is %s of %d bytes", d.Digest, d.Size, sum, len(content))
	}
	if v != nil {
		decode(t, content, v)
	}
	return content
}

// decode reads JSON that has no other fields than v.
func decode(t *testing.T, content []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
}

// imagesOf reads an image layout. Its blobs are those that it names, no others.
func imagesOf(t *testing.T, name string) []image {
	t.Helper()
	files := tarFiles(t, released(t).file(t, name))
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	var top index
	decode(t, files["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout has not one image of this version: %s", files["index.json"])
	}
	used := map[string]bool{}
	manifests := top.Manifests
	if d := manifests[0]; d.MediaType == indexType {
		var nested index
		blob(t, files, d, &nested)
		used[blobPath(d)] = true
		manifests = nested.Manifests
	}
	var out []image
	for _, d := range manifests {
		var m manifest
		i := image{platform: *d.Platform}
		blob(t, files, d, &m)
		blob(t, files, m.Config, &i.config)
		used[blobPath(d)], used[blobPath(m.Config)], used[blobPath(m.Layers[0])] = true, true, true
		z, err := gzip.NewReader(bytes.NewReader(blob(t, files, m.Layers[0], nil)))
		if err == nil {
			i.layer, err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(i.layer)); len(m.Layers) != 1 || !slices.Equal(i.config.RootFS.DiffIDs, []string{sum}) {
			t.Errorf("layers of the configuration are %v, want %s", i.config.RootFS.DiffIDs, sum)
		}
		if i.platform != i.config.ociPlatform {
			t.Errorf("%v is configured for %v", i.platform, i.config.ociPlatform)
		}
		out = append(out, i)
	}
	for name := range files {
		if strings.HasPrefix(name, "blobs/") && !used[name] {
			t.Errorf("nothing names %s", name)
		}
	}
	return out
}

// imageOf returns the image of a layout that has one.
func imageOf(t *testing.T, name string) image {
	t.Helper()
	all := imagesOf(t, name)
	if len(all) != 1 {
		t.Fatalf("%d images", len(all))
	}
	return all[0]
}

func TestImageHasAPlatformForEveryLinuxTarget(t *testing.T) {
	r := released(t)
	var want, got []string
	for _, target := range r.targets {
		if target.os == "linux" {
			want = append(want, target.arch)
			one := imageOf(t, "weir-"+version+"-image-"+target.arch+".tar")
			if program := r.unpack(t, target)["weir"]; one.platform.Architecture != target.arch || !bytes.Equal(tarFiles(t, one.layer)["weir"], program) {
				t.Errorf("the image for %s has another program than the archive", target.arch)
			}
		}
	}
	for _, i := range imagesOf(t, "weir-"+version+"-image.tar") {
		got = append(got, i.platform.Architecture)
	}
	if !slices.Equal(got, want) {
		t.Errorf("platforms are %v, want %v", got, want)
	}
}

// Docker's own image store reads manifest.json.
func TestDockerFindsTheImage(t *testing.T) {
	files := tarFiles(t, released(t).file(t, platformTar()))
	var list []struct {
		Config           string
		RepoTags, Layers []string
	}
	decode(t, files["manifest.json"], &list)
	if len(list) != 1 || !slices.Equal(list[0].RepoTags, []string{"weir:" + version}) {
		t.Fatalf("manifest.json is %s", files["manifest.json"])
	}
	var config imageConfig
	decode(t, files[list[0].Config], &config)
	if len(files[list[0].Layers[0]]) == 0 || config.Config.User != "65532:65532" {
		t.Errorf("manifest.json names no layer or another configuration: %s", files["manifest.json"])
	}
}

// rootOf unpacks an image into a folder.
func rootOf(t *testing.T, i image) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for a := tar.NewReader(bytes.NewReader(i.layer)); ; {
		h, err := a.Next()
		if err == io.EOF {
			return root
		} else if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(name, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(a); err == nil {
				err = os.WriteFile(name, content, 0o600)
			}
		}
		if err == nil {
			err = os.Chmod(name, h.FileInfo().Mode())
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(name, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
