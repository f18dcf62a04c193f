// Package upgrade replaces the program by a newer release, which it verifies as deploy/install.sh
// does: the checksums of the release are signed, and the archive must be the one that they name.
package upgrade

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// Source is where releases are.
type Source struct {
	Releases string // their address, such as https://github.com/owner/weir/releases
	From     string // where the files of one release are, in place of Releases
	Signer   string // public key that signs SHA256SUMS, as ssh-keygen writes it; "" for none
	System   string // OS-ARCH, as archives name it
	Client   *http.Client
}

// ErrNoAddress is the error of a source that names no address.
var ErrNoAddress = errors.New("this build does not know where releases are; name the folder of one with --from ADDRESS")

// Release is a release whose checksums are verified.
type Release struct {
	Version   string
	from      string
	file, sum string
	client    *http.Client
}

const (
	maxList    = 1 << 20   // bytes of SHA256SUMS and its signature
	maxArchive = 256 << 20 // bytes of an archive, and of the program in it
)

// NewClient returns a client that uses the proxy of the environment. An https address never
// leads to another protocol.
func NewClient() *http.Client {
	return &http.Client{Timeout: 10 * time.Minute, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
			return fmt.Errorf("it leads to %s, which is not https", r.URL.Redacted())
		}
		if len(via) > 10 {
			return errors.New("more than 10 redirects")
		}
		return nil
	}}
}

// Find returns a release, the latest if version is "". Its v may be left out.
func (s Source) Find(ctx context.Context, version string) (*Release, error) {
	r := &Release{Version: version, from: strings.TrimRight(s.From, "/"), client: s.Client}
	switch {
	case r.from != "":
	case s.Releases == "":
		return nil, ErrNoAddress
	case version == "":
		r.from = s.Releases + "/latest/download"
	default:
		r.from = s.Releases + "/download/v" + strings.TrimPrefix(version, "v")
	}
	sums, err := r.fetch(ctx, "SHA256SUMS", maxList)
	if err != nil {
		return nil, err
	}
	if s.Signer != "" {
		signature, err := r.fetch(ctx, "SHA256SUMS.sig", maxList)
		if err != nil {
			return nil, err
		}
		if err := verify(s.Signer, sums, signature); err != nil {
			return nil, fmt.Errorf("the signature of SHA256SUMS is not that of weir: %w", err)
		}
	}
	return r, r.choose(string(sums), s.System)
}

// choose finds the archive for a system in the checksums.
func (r *Release) choose(sums, system string) error {
	want := r.Version
	for line := range strings.Lines(sums) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		version, ok := archiveOf(file, system)
		if !ok || want != "" && version != want && version != "v"+want {
			continue
		}
		if r.file != "" {
			return fmt.Errorf("%s has several versions; choose one with --version", r.from)
		}
		r.Version, r.file, r.sum = version, file, sum
	}
	if r.file == "" {
		return fmt.Errorf("%s has no program for %s%s", r.from, system, ofVersion(want))
	}
	return nil
}

func ofVersion(version string) string {
	if version == "" {
		return ""
	}
	return " of version " + version
}

// archiveOf returns the version of an archive's name if it is for a system.
func archiveOf(file, system string) (version string, ok bool) {
	for _, kind := range []string{".tar.gz", ".zip"} {
		name, is := strings.CutSuffix(file, "-"+system+kind)
		version, mine := strings.CutPrefix(name, "weir-")
		if is && mine && version != "" && !strings.ContainsAny(version, `/\`) {
			return version, true
		}
	}
	return "", false
}

// Program downloads the archive, compares its checksum, and returns the program in it.
func (r *Release) Program(ctx context.Context) ([]byte, error) {
	archive, err := r.fetch(ctx, r.file, maxArchive)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != r.sum {
		return nil, fmt.Errorf("the checksum of %s is not that of the release", r.file)
	}
	read := fromTar
	if strings.HasSuffix(r.file, ".zip") {
		read = fromZip
	}
	program, err := read(archive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.file, err)
	}
	return program, nil
}

// isProgram reports whether a file of an archive is the program in its folder.
func isProgram(name string) bool {
	base := path.Base(name)
	return (base == "weir" || base == "weir.exe") && strings.Count(name, "/") == 1
}

var errNoProgram = errors.New("the archive has no program")

func fromTar(archive []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil, errNoProgram
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && isProgram(h.Name) {
			return atMost(t, maxArchive)
		}
	}
}

func fromZip(archive []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		if !isProgram(f.Name) {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer content.Close()
		return atMost(content, maxArchive)
	}
	return nil, errNoProgram
}

// fetch downloads a file of the release.
func (r *Release) fetch(ctx context.Context, name string, most int64) ([]byte, error) {
	address := r.from + "/" + name
	failed := func(why any) error {
		return fmt.Errorf("%s cannot be downloaded: %v; behind a proxy, set HTTPS_PROXY", address, why)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, failed(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, failed(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, failed("status " + res.Status)
	}
	content, err := atMost(res.Body, most)
	if err != nil {
		return nil, failed(err)
	}
	return content, nil
}

// atMost reads what has at most a number of bytes.
func atMost(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return content, err
}
