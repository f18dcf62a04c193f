// Command catalog-gen writes pkg/catalog/models.txt, the static model list, and
// sections.go beside it, the offsets of each provider's section.
//
// It is run by hand, never by a build:
//
//	go run ./test/catalog-gen
//
// The packages of sources.go are fetched at their exact versions into a
// temporary folder with npm pack, checked against the recorded digest, read as
// data and thrown away; none is installed or executed. Hand entries follow
// (hand.go), then the extract of models.dev for what they do not state (lists.go, written
// by -lists); ids that no longer answer are taken out (retired.go). Only facts
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
	"slices"
	"sort"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "pkg/catalog/models.txt", "file to write")
	print := flag.Bool("digests", false, "print the digests of the fetched packages and stop")
	lists := flag.Bool("lists", false, "write the extracts of lists from their packages and stop")
	flag.Parse()
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if *lists {
		if err := writeLists(dir, "test/catalog-gen/lists"); err != nil {
			log.Fatal(err)
		}
		return
	}
	pkgs, err := fetch(dir, *print)
	if err != nil {
		log.Fatal(err)
	}
	if *print {
		return
	}
	index, text, n, err := build(pkgs)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.FromSlash(*out), text, 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(*out), "sections.go"), index, 0o644); err != nil {
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
	price        string // as in catalog.Price
	dims         int
	name         string
	deprecated   string // the day of its end, a blank and the id of its successor
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
func build(pkgs map[string]files) (index, text []byte, n int, err error) {
	all := map[string]list{}
	at := func(alias string) list {
		if all[alias] == nil {
			all[alias] = list{}
		}
		return all[alias]
	}
	for _, c := range chats {
		if err := readChats(pkgs[chatPackage.name], c, at(c.alias)); err != nil {
			return nil, nil, 0, err
		}
	}
	for _, s := range ids {
		got, err := readIDs(pkgs[s.pkg], s.name)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s %s: %w", s.pkg, s.name, err)
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
	addList(all)
	addPrices(all)
	deprecate(all)
	return render(all)
}

// addPrices adds the prices of hand.go to what the packages and the list have. One that
// begins with rates of tokens takes the place of theirs.
func addPrices(all map[string]list) {
	for _, p := range prices {
		used := false
		for _, alias := range strings.Fields(p.alias) {
			for key, r := range all[alias] {
				if !slices.ContainsFunc(strings.Fields(p.ids), func(id string) bool { return match(id, r.id) }) {
					continue
				}
				used = true
				if p.price == "@flex" { // as without
					base, _, _ := strings.Cut(r.price, " ")
					if base != "" {
						r.price += " @flex=" + base
					}
				} else if p.price[0] >= '0' && p.price[0] <= '9' { // whole, in place of another
					r.price = p.price
				} else if r.price != "" || !strings.ContainsAny(p.price[:1], "@>") { // special terms need usual ones
					r.price = strings.TrimSpace(r.price + " " + p.price)
				}
				all[alias][key] = r
			}
		}
		if !used {
			log.Printf("note: no source lists the priced %s %s", p.alias, p.ids)
		}
	}
}

// match compares an id with a pattern that may end in an asterisk.
func match(pattern, id string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(id, p)
	}
	return pattern == id
}

// render writes the sections in the order of aliases, and the Go file that has
// the offsets of each.
func render(all map[string]list) (index, text []byte, n int, err error) {
	var offsets, body strings.Builder
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
		from := body.Len()
		body.WriteString(strings.Join(lines, "\n") + "\n")
		fmt.Fprintf(&offsets, "\t{%q, %d, %d},\n", alias, from, body.Len())
	}
	for alias := range all {
		return nil, nil, 0, fmt.Errorf("alias %q has no place in the order", alias)
	}
	return []byte(header + offsets.String() + "}\n"), []byte(body.String()), n, nil
}

const header = `// Code generated by test/catalog-gen. DO NOT EDIT.

package catalog

// sections are the parts of models.txt, in the order of the providers' table.
var sections = [...]section{
`

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
	s := strings.Join([]string{r.id, r.kind, num(r.context), num(r.max), r.in, r.out, r.caps, r.price, num(r.dims), name, r.deprecated}, "\t")
	return strings.TrimRight(s, "\t")
}
