package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// files are the texts of one package by path inside it.
type files map[string]string

// fetch packs every source and reads the files that carry data. With show set
// it prints the digests instead of checking them.
func fetch(dir string, show bool) (map[string]files, error) {
	all := map[string]files{}
	for _, s := range append([]source{chatPackage}, typePackages...) {
		ball, err := pack(dir, s, show)
		if err != nil {
			return nil, err
		}
		if all[s.name], err = unpack(string(ball), carries); err != nil {
			return nil, fmt.Errorf("%s@%s: %w", s.name, s.version, err)
		}
	}
	return all, nil
}

// pack fetches the tarball of a source, and checks its digest or prints it.
func pack(dir string, s source, show bool) ([]byte, error) {
	cmd := exec.Command("npm", "pack", "--silent", s.name+"@"+s.version)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack %s@%s: %w", s.name, s.version, err)
	}
	lines := strings.Fields(string(out))
	if len(lines) == 0 {
		return nil, fmt.Errorf("npm pack %s@%s named no file", s.name, s.version)
	}
	ball, err := os.ReadFile(filepath.Join(dir, filepath.Base(lines[len(lines)-1])))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(ball)
	if got := hex.EncodeToString(sum[:]); show {
		fmt.Printf("\t{%q, %q, %q},\n", s.name, s.version, got)
	} else if got != s.sha256 {
		return nil, fmt.Errorf("%s@%s: the tarball is %s, recorded is %s", s.name, s.version, got, s.sha256)
	}
	return ball, nil
}

// carries reports whether a file of a package has ids, limits or prices.
func carries(name string) bool {
	return name == "dist/index.d.ts" || strings.HasPrefix(name, "dist/providers/data/")
}

// unpack keeps the wanted files in memory; nothing is written.
func unpack(ball string, wanted func(name string) bool) (files, error) {
	z, err := gzip.NewReader(strings.NewReader(ball))
	if err != nil {
		return nil, err
	}
	got := files{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(h.Name, "package/")
		if !wanted(name) {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(r, 256<<20))
		if err != nil {
			return nil, err
		}
		got[name] = string(b)
	}
}
