package catalog

import (
	"cmp"
	_ "embed"
	"strings"
)

// text is the static catalogue, cut into sections by sections.go. A section has
// a line per model, sorted by bytes, with these fields between tabs, empty
// where unknown and left out at the end:
//
//	id  kind  context  max output  input  output  capabilities  price  dimensions  name  deprecated
//
// kind is a letter of kinds, input and output are letters of modalities,
// capabilities a letter each (upper case has it, lower case has it not), price
// as in Price, deprecated as in Model. test/catalog-gen writes the file; NOTICE names the sources.
//
//go:embed models.txt
var text string

// kinds are the letters of kinds in models.txt, and the modalities that a kind
// implies.
var kinds = []struct {
	letter  byte
	kind    Kind
	in, out Modality
}{
	{'l', LLM, 0, 0}, // the input of a chat model is stated, or unknown
	{'e', Embedding, Text, Vectors},
	{'i', Image, Text, Images},
	{'t', TTS, Text, Audio},
	{'s', STT, Audio, Text},
	{'v', Video, Text, Videos},
	{'m', Music, Text, Audio},
	{'r', Rerank, Text, 0},
	{'o', ImageToText, Images, Text},
	{'w', Realtime, Text | Audio, Text | Audio}, // over a WebSocket
}

// Usual returns the modalities that every model of a kind has.
func Usual(k Kind) (in, out Modality) {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i].in, kinds[i].out
		}
	}
	return 0, 0
}

// section is the part of text that belongs to one alias.
type section struct {
	alias    string
	from, to int // offsets into text
}

// body returns the lines of the section.
func (s *section) body() string { return text[s.from:s.to] }

func find(alias string) *section {
	for i := range sections {
		if sections[i].alias == alias {
			return &sections[i]
		}
	}
	return nil
}

// Models returns the static models of an alias, sorted by id; an id appears
// once for each of its kinds. It parses the whole section: look-ups by id use
// Lookup or KindOf.
func Models(alias string) []Model {
	s := find(alias)
	if s == nil {
		return nil
	}
	body := s.body()
	models := make([]Model, 0, strings.Count(body, "\n"))
	for line := range strings.Lines(body) {
		models = append(models, parse(line[:len(line)-1]))
	}
	return models
}

// Has reports whether an alias has static models.
func Has(alias string) bool { return find(alias) != nil }

// Lookup returns the static models of an alias with this id, one for each of its kinds.
// It reads only their lines.
func Lookup(alias, id string) []Model {
	s := find(alias)
	if s == nil {
		return nil
	}
	return s.lookup(id)
}

func (s *section) lookup(id string) []Model {
	var got []Model
	body := s.body()
	for at := search(body, id); at < len(body); {
		end := at + strings.IndexByte(body[at:], '\n')
		line := body[at:end]
		if !named(line, id) {
			break
		}
		got = append(got, parse(line))
		at = end + 1
	}
	return got
}

// search returns the offset of the first line of a section that does not sort
// before id. A tab ends an id and sorts before every byte of one, so lines are
// in the order of their ids.
func search(body, id string) int {
	low, high := 0, len(body)
	for low < high {
		mid := (low + high) / 2
		start := strings.LastIndexByte(body[low:mid], '\n') + 1 + low
		end := start + strings.IndexByte(body[start:], '\n')
		line := body[start:end]
		if tab := strings.IndexByte(line, '\t'); tab >= 0 {
			line = line[:tab]
		}
		if line < id {
			low = end + 1
		} else {
			high = start
		}
	}
	return low
}

// HasPrefixed reports whether an alias has static models whose ids begin with the alias and
// a slash.
func HasPrefixed(alias string) bool {
	s := find(alias)
	if s == nil {
		return false
	}
	body, prefix := s.body(), alias+"/"
	return strings.HasPrefix(body[search(body, prefix):], prefix)
}

func named(line, id string) bool {
	return len(line) > len(id) && line[len(id)] == '\t' && line[:len(id)] == id
}

// KindOf returns the static kind of a model: the chat kind of an id with several kinds,
// else the first. See docs/reference/spec.md, 2.7.
func KindOf(alias, id string) (Kind, bool) {
	s := find(alias)
	if s == nil {
		return "", false
	}
	var first Kind
	body := s.body()
	for at := search(body, id); at < len(body) && named(body[at:], id); {
		k := kindOf(body[at+len(id)+1])
		if k == LLM {
			return LLM, true
		}
		first = cmp.Or(first, k)
		at += strings.IndexByte(body[at:], '\n') + 1
	}
	return first, first != ""
}

// UpstreamID returns the provider's id of a listed model. A list omits a leading
// "<alias>/" of an id (docs/reference/spec.md, 4.1.4.4), also if it is the vendor's own
// name before the model's, as in nvidia's nvidia/nemotron-…
func UpstreamID(alias, id string) string {
	s := find(alias)
	if s == nil || s.has(id) {
		return id
	}
	if whole := alias + "/" + id; s.has(whole) {
		return whole
	}
	return id
}

func (s *section) has(id string) bool {
	body := s.body()
	at := search(body, id)
	return at < len(body) && named(body[at:], id)
}

// has reports whether an alias has a static model with this id.
func has(alias, id string) bool {
	s := find(alias)
	return s != nil && s.has(id)
}

// Found is a model with the alias that lists it.
type Found struct {
	Alias string
	Model
	Added bool // by an Update
}

// Find returns every static model with this id, in the order of the providers'
// table. It takes a few microseconds and caches nothing.
func Find(id string) []Found {
	if id == "" {
		return nil
	}
	var got []Found
	for i := range sections {
		for _, m := range sections[i].lookup(id) {
			got = append(got, Found{sections[i].alias, m, false})
		}
	}
	return got
}

// Aliases lists the aliases that have static models, in the order of the
// providers' table.
func Aliases() []string {
	names := make([]string, len(sections))
	for i := range sections {
		names[i] = sections[i].alias
	}
	return names
}

func kindOf(letter byte) Kind {
	for _, k := range kinds {
		if k.letter == letter {
			return k.kind
		}
	}
	return LLM
}

// parse reads one line.
func parse(line string) Model {
	id, fields, _ := strings.Cut(line, "\t")
	return parseFields(id, fields)
}

// parseFields reads the fields that follow the id.
func parseFields(id, line string) Model {
	next := func() string {
		field, rest, _ := strings.Cut(line, "\t")
		line = rest
		return field
	}
	m := Model{ID: id}
	if k := next(); k != "" {
		m.Kind = kindOf(k[0])
	}
	m.Context, m.MaxOutput = number(next()), number(next())
	m.Input, m.Output = letters(next()), letters(next())
	for _, c := range []byte(next()) {
		for i := range capabilities {
			if capabilities[i].letter == c&^0x20 {
				m.Caps.Set(1<<i, c&0x20 == 0)
			}
		}
	}
	m.Price = Price(next())
	m.Dimensions = number(next())
	m.Name = next()
	m.Deprecated = next()
	in, out := Usual(m.Kind)
	m.Input |= in
	m.Output |= out
	return m
}

func number(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func letters(s string) Modality {
	var m Modality
	for i := 0; i < len(s); i++ {
		for j := range modalities {
			if modalities[j].letter == s[i] {
				m |= 1 << j
			}
		}
	}
	return m
}
