package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// nonRoot is the user and group of the program in the image, a number that no
// host uses for a person.
const nonRoot = 65532

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// localImage is the name of an image that is in no registry.
const localImage = "weir"

// validImage is a name of an image without its tag.
var validImage = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$`)

// platform is a Linux target and its program.
type platform struct {
	arch    string
	program []byte
}

// descriptor names a blob by its digest, see "OCI Content Descriptors" in the
// OCI image specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *ociPlatform      `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ociPlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// imageConfig is the OCI image configuration, with the field Healthcheck that
// Docker adds to it.
type imageConfig struct {
	ociPlatform
	Created time.Time `json:"created"`
	Config  runConfig `json:"config"`
	RootFS  struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []history `json:"history"`
}

type runConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Labels       map[string]string
	Healthcheck  healthcheck
}

// healthcheck has its times in nanoseconds.
type healthcheck struct {
	Test                                          []string
	Interval, Timeout, StartPeriod, StartInterval time.Duration
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// layout is an OCI image layout that is being written.
type layout struct {
	entries []entry
	seen    map[string]bool
}

// add adds a blob and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	if !l.seen[digest] {
		l.seen[digest] = true
		l.entries = append(l.entries, entry{name: "blobs/sha256/" + digest, mode: 0o644, content: content})
	}
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

// addJSON adds a value that JSON can hold as a blob.
func (l *layout) addJSON(mediaType string, v any) descriptor { return l.add(mediaType, marshal(v)) }

func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // of types of this file only
	}
	return bytes.TrimSpace(b.Bytes())
}

// rootFS returns the files of the image as a tar file: the program, the
// licences, and a folder for data that belongs to the program's user. The
// roots of TLS are part of the program.
func (r *release) rootFS(program, notices []byte) ([]byte, error) {
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return tarred([]entry{
		{name: "LICENSE", mode: 0o644, content: licence},
		{name: "THIRD-PARTY.txt", mode: 0o644, content: notices},
		{name: "data/", mode: 0o700, owner: nonRoot},
		{name: "weir", mode: 0o755, content: program},
	})
}

// config returns the configuration of the image for an architecture.
func (r *release) config(arch, diffID string) imageConfig {
	c := imageConfig{ociPlatform: ociPlatform{arch, "linux"}, Created: epoch}
	c.Config = runConfig{
		User:         fmt.Sprintf("%d:%d", nonRoot, nonRoot),
		ExposedPorts: map[string]struct{}{"8787/tcp": {}},
		Env:          []string{"DATA_DIR=/data", "LISTEN=0.0.0.0:8787"},
		Entrypoint:   []string{"/weir"},
		Cmd:          []string{"serve"},
		Volumes:      map[string]struct{}{"/data": {}},
		WorkingDir:   "/data",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "weir",
			"org.opencontainers.image.description": "AI gateway: one address and one key for many providers and accounts",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.licenses":    "MIT",
		},
		Healthcheck: healthcheck{
			Test:     []string{"CMD", "/weir", "health"},
			Interval: 30 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, StartInterval: time.Second,
		},
	}
	c.RootFS.Type = "layers"
	c.RootFS.DiffIDs = []string{diffID}
	c.History = []history{{Created: epoch, CreatedBy: "./build.sh release " + r.version}}
	return c
}

// addImage adds the image for a platform and returns its manifest's descriptor.
func (r *release) addImage(l *layout, p platform, notices []byte) (descriptor, manifest, error) {
	files, err := r.rootFS(p.program, notices)
	if err != nil {
		return descriptor{}, manifest{}, err
	}
	layer, err := gzipped(files)
	if err != nil {
		return descriptor{}, manifest{}, err
	}
	m := manifest{SchemaVersion: 2, MediaType: manifestType, Layers: []descriptor{l.add(layerType, layer)}}
	m.Config = l.addJSON(configType, r.config(p.arch, fmt.Sprintf("sha256:%x", sha256.Sum256(files))))
	d := l.addJSON(manifestType, m)
	d.Platform = &ociPlatform{p.arch, "linux"}
	return d, m, nil
}

// writeImages writes an image layout for all platforms, and one for each.
func (r *release) writeImages(platforms []platform, notices []byte) error {
	if len(platforms) == 0 {
		return nil
	}
	all := layout{seen: map[string]bool{}}
	var manifests []descriptor
	for _, p := range platforms {
		one := layout{seen: map[string]bool{}}
		d, m, err := r.addImage(&one, p, notices)
		if err != nil {
			return err
		}
		manifests = append(manifests, d)
		all.entries = append(all.entries, one.entries...)
		// Docker's own image store reads this file in place of index.json.
		docker := []struct {
			Config           string
			RepoTags, Layers []string
		}{{blobPath(m.Config), []string{r.image + ":" + r.version}, []string{blobPath(m.Layers[0])}}}
		one.entries = append(one.entries, entry{name: "manifest.json", mode: 0o644, content: marshal(docker)})
		if err := r.writeLayout(one, d, "weir-"+r.version+"-image-"+p.arch+".tar"); err != nil {
			return err
		}
	}
	top := all.addJSON(indexType, index{2, indexType, manifests})
	return r.writeLayout(all, top, "weir-"+r.version+"-image.tar")
}

func blobPath(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }

// writeLayout writes a layout whose one image is top.
func (r *release) writeLayout(l layout, top descriptor, file string) error {
	name := r.image
	if name == localImage {
		name = "docker.io/library/" + name // as Docker completes it
	}
	top.Annotations = map[string]string{
		"io.containerd.image.name":          name + ":" + r.version,
		"org.opencontainers.image.ref.name": r.version,
	}
	b, err := tarred(append([]entry{
		{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{name: "index.json", mode: 0o644, content: marshal(index{2, indexType, []descriptor{top}})},
	}, l.entries...))
	if err != nil {
		return err
	}
	return r.write(file, b)
}
