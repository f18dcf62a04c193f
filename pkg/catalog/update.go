package catalog

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Update is what the operator's source changes of the static catalogue: prices and limits
// that differ, and models that the catalogue lacks. Times are Unix milliseconds. A nil or
// zero Update changes nothing: its methods return what the static catalogue has.
type Update struct {
	Source    string `json:"source"`
	Signed    bool   `json:"signed"`              // the signature of the source was verified
	IssuedAt  int64  `json:"issuedAt,omitempty"`  // as a signed source states it
	FetchedAt int64  `json:"fetchedAt,omitempty"` // when the source was last taken
	FailedAt  int64  `json:"failedAt,omitempty"`  // when it could not be taken since, and why
	Error     string `json:"error,omitempty"`
	Rows      int    `json:"rows"` // prices
	Held      int    `json:"held"` // prices of the source that were not taken, because they change too much or are too dear
	// the first models, with commas between them, that the static catalogue lacks and whose prices are
	// above any vendor's
	Dear          string `json:"dear,omitempty"`
	AddedModels   int    `json:"addedModels"`   // models that the static catalogue lacks
	Limits        int    `json:"limits"`        // chat models of the static catalogue whose limits differ
	RefusedModels int    `json:"refusedModels"` // models and limits of the source that were not taken, because they are out of bounds
	// Text has a line for each price, sorted by alias, then id, by bytes:
	//
	//	alias/id  price
	//
	// with a tab between them.
	Text string `json:"text,omitempty"`
	// ModelText has a line for each model, in the same order: the alias, a slash and the
	// line of models.txt, without a price, which is in Text.
	ModelText string `json:"modelText,omitempty"`
	// LimitText has a line for each chat model with other limits, in the same order:
	//
	//	alias/id  context  max output
	//
	// with tabs between them, and nothing for a limit that does not differ.
	LimitText string `json:"limitText,omitempty"`
}

// ReadUpdate reads what encoding/json has written of an Update. ok is false for anything
// else.
func ReadUpdate(raw []byte) (u Update, ok bool) {
	if !gjson.ValidBytes(raw) {
		return u, false
	}
	gjson.ParseBytes(raw).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "source":
			u.Source = v.String()
		case "signed":
			u.Signed = v.Bool()
		case "issuedAt":
			u.IssuedAt = v.Int()
		case "fetchedAt":
			u.FetchedAt = v.Int()
		case "failedAt":
			u.FailedAt = v.Int()
		case "error":
			u.Error = v.String()
		case "rows":
			u.Rows = int(v.Int())
		case "held":
			u.Held = int(v.Int())
		case "dear":
			u.Dear = v.String()
		case "addedModels":
			u.AddedModels = int(v.Int())
		case "refusedModels":
			u.RefusedModels = int(v.Int())
		case "text":
			u.Text = v.String()
		case "modelText":
			u.ModelText = v.String()
		case "limits":
			u.Limits = int(v.Int())
		case "limitText":
			u.LimitText = v.String()
		}
		return true
	})
	lines := func(s string) bool { return s == "" || strings.HasSuffix(s, "\n") }
	return u, u.FetchedAt+u.FailedAt > 0 && lines(u.Text) && lines(u.ModelText) && lines(u.LimitText)
}

// At returns when the source was fetched; 0 for never.
func (u *Update) At() int64 {
	if u == nil {
		return 0
	}
	return u.FetchedAt
}

// PriceOf returns the price of a model: that of the source, else that of the static
// catalogue, else "". A snapshot without one has that of the model without the date, a
// fine-tuned model that of all that were made from its model.
func (u *Update) PriceOf(alias, id string) Price {
	if price := u.priceOf(alias, id); price != "" {
		return price
	}
	if base := tunedFrom(alias, id); base != "" {
		return fineTunePrice(base)
	}
	if base := undated(id); base != id {
		return u.priceOf(alias, base)
	}
	return ""
}

func (u *Update) priceOf(alias, id string) Price {
	if u != nil && u.Text != "" {
		if price := u.Price(alias, id); price != "" {
			return price
		}
	}
	return PriceOf(alias, id)
}

// Price returns the price that the source has for a model, or "".
func (u *Update) Price(alias, id string) Price {
	if u == nil {
		return ""
	}
	return Price(row(u.Text, alias, id))
}

// limit returns a model of the static catalogue with the source's limits.
func (u *Update) limit(alias string, m Model) Model {
	if u == nil || u.LimitText == "" || m.Kind != LLM {
		return m
	}
	context, output, _ := strings.Cut(row(u.LimitText, alias, m.ID), "\t")
	if n := number(context); n > 0 {
		m.Context = n
	}
	if n := number(output); n > 0 {
		m.MaxOutput = n
	}
	return m
}

// Facts is Lookup. A snapshot that is not listed has the facts of the model without the
// date, a fine-tuned model those of the model that it was made from.
func (u *Update) Facts(alias, id string) []Model {
	known := u.Lookup(alias, id)
	if base := tunedFrom(alias, id); known == nil && base != "" {
		return u.Facts(alias, base)
	}
	if base := undated(id); known == nil && base != id {
		return u.Lookup(alias, base)
	}
	return known
}

// undated returns the id of a model without the date of a snapshot at its end, as in
// gpt-4.1-2025-04-14, claude-opus-4-1-20250805, claude-opus-4-1@20250805 and Bedrock's
// anthropic.claude-opus-4-1-20250805-v1:0.
func undated(id string) string {
	base := strings.TrimSuffix(id, "-v1:0")
	for _, form := range [...]string{"-20##-##-##", "-20######", "@20######"} {
		at := len(base) - len(form)
		if at > 0 && dated(base[at:], form) {
			return base[:at]
		}
	}
	return id
}

// dated reports whether s has the form, in which # stands for a digit, and the month and
// the day of a date.
func dated(s, form string) bool {
	for i := range len(form) {
		if form[i] == '#' && (s[i] < '0' || s[i] > '9') || form[i] != '#' && s[i] != form[i] {
			return false
		}
	}
	day := s[len(s)-2:]
	month := strings.TrimSuffix(s[:len(s)-2], "-")
	month = month[len(month)-2:]
	return month >= "01" && month <= "12" && day >= "01" && day <= "31"
}

// Lookup is the function Lookup, with the models and limits of the source.
func (u *Update) Lookup(alias, id string) []Model {
	built := Lookup(alias, id)
	for i := range built {
		built[i] = u.limit(alias, built[i])
	}
	if len(built) > 0 || !u.adds() {
		return built
	}
	if fields := row(u.ModelText, alias, id); fields != "" {
		return []Model{parseFields(id, fields)}
	}
	return nil
}

// KindOf is the function KindOf, with the models that the source adds.
func (u *Update) KindOf(alias, id string) (Kind, bool) {
	kind, known := KindOf(alias, id)
	if known || !u.adds() {
		return kind, known
	}
	if fields := row(u.ModelText, alias, id); fields != "" {
		return kindOf(fields[0]), true
	}
	return "", false
}

// UpstreamID is the function UpstreamID, with the models that the source adds.
func (u *Update) UpstreamID(alias, id string) string {
	built := UpstreamID(alias, id)
	if !u.adds() || built != id || has(alias, id) || row(u.ModelText, alias, id) != "" {
		return built
	}
	if whole := alias + "/" + id; row(u.ModelText, alias, whole) != "" {
		return whole
	}
	return id
}

// Models is the function Models, with the models and limits of the source.
func (u *Update) Models(alias string) []Model {
	built := Models(alias)
	for i := range built {
		built[i] = u.limit(alias, built[i])
	}
	if !u.adds() {
		return built
	}
	lines := u.ModelText[seek(u.ModelText, alias, ""):seek(u.ModelText, alias+"\x00", "")]
	if lines == "" {
		return built
	}
	all := make([]Model, 0, len(built)+strings.Count(lines, "\n"))
	for line := range strings.Lines(lines) {
		m := parse(line[len(alias)+1 : len(line)-1])
		for len(built) > 0 && built[0].ID < m.ID {
			all, built = append(all, built[0]), built[1:]
		}
		if len(built) == 0 || built[0].ID != m.ID {
			all = append(all, m)
		}
	}
	return append(all, built...)
}

// Find is the function Find, with the limits of the source. The models that it adds follow
// those of the static catalogue.
func (u *Update) Find(id string) []Found {
	got := Find(id)
	for i := range got {
		got[i].Model = u.limit(got[i].Alias, got[i].Model)
	}
	if id == "" || !u.adds() {
		return got
	}
	for i := range sections {
		s := &sections[i]
		if fields := row(u.ModelText, s.alias, id); fields != "" && !s.has(id) {
			got = append(got, Found{s.alias, parseFields(id, fields), true})
		}
	}
	return got
}

// KnownVideo reports whether a provider has a video model with this id, and no provider
// has a model of another kind with it. For an id with slashes the last part counts too.
// A model that the source adds counts for an id that the static catalogue lacks.
func (u *Update) KnownVideo(id string) bool {
	if !looksVideo(id) {
		return false
	}
	last := id[strings.LastIndexByte(id, '/')+1:]
	var found []Found
	for _, find := range [...]func(string) []Found{Find, u.Find} {
		for _, name := range [...]string{id, last} {
			if found == nil {
				found = find(name)
			}
		}
	}
	for i := range found {
		if found[i].Kind != Video {
			return false
		}
	}
	return found != nil
}

// adds reports whether the source adds a model.
func (u *Update) adds() bool { return u != nil && u.ModelText != "" }

// row returns what follows the name and the tab in the line of a model, or "".
func row(text, alias, id string) string {
	rest := text[seek(text, alias, id):]
	n := len(alias) + 1 + len(id)
	if len(rest) <= n || rest[:len(alias)] != alias || rest[len(alias)] != '/' || rest[len(alias)+1:n] != id ||
		rest[n] != '\t' {
		return ""
	}
	line, _, _ := strings.Cut(rest[n+1:], "\n")
	return line
}

// seek returns the offset of the first line, of those that begin with alias/id and a tab
// and are in this order, that does not sort before alias and id.
func seek(text, alias, id string) int {
	low, high := 0, len(text)
	for low < high {
		mid := low + (high-low)/2
		start := strings.LastIndexByte(text[low:mid], '\n') + 1 + low
		line, _, _ := strings.Cut(text[start:], "\n")
		name, _, _ := strings.Cut(line, "\t")
		lineAlias, lineID, _ := strings.Cut(name, "/")
		c := strings.Compare(lineAlias, alias)
		if c == 0 {
			c = strings.Compare(lineID, id)
		}
		if c < 0 {
			low = min(start+len(line)+1, len(text))
		} else {
			high = start
		}
	}
	return low
}

// AppendModel appends the line of a model for Update.ModelText.
func AppendModel(b []byte, alias string, m *Model) []byte {
	b = append(append(append(append(b, alias...), '/'), m.ID...), '\t')
	for i := range kinds {
		if kinds[i].kind == m.Kind {
			b = append(b, kinds[i].letter)
		}
	}
	b = appendNumber(append(b, '\t'), m.Context)
	b = appendNumber(append(b, '\t'), m.MaxOutput)
	in, out := Usual(m.Kind)
	b = appendLetters(append(b, '\t'), m.Input&^in)
	b = appendLetters(append(b, '\t'), m.Output&^out)
	b = append(b, '\t')
	for i := range capabilities {
		switch has, known := m.Caps.Get(1 << i); {
		case has:
			b = append(b, capabilities[i].letter)
		case known:
			b = append(b, capabilities[i].letter|0x20)
		}
	}
	b = appendNumber(append(b, "\t\t"...), m.Dimensions)
	b = append(append(b, '\t'), m.Name...)
	return append(b, '\n')
}

// AppendLimits appends the line of a model for Update.LimitText. A limit of 0 does not
// differ.
func AppendLimits(b []byte, alias, id string, context, maxOutput int) []byte {
	b = append(append(append(append(b, alias...), '/'), id...), '\t')
	b = append(appendNumber(b, context), '\t')
	return append(appendNumber(b, maxOutput), '\n')
}

func appendNumber(b []byte, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(b, int64(n), 10)
}

func appendLetters(b []byte, m Modality) []byte {
	for i := range modalities {
		if m&(1<<i) != 0 {
			b = append(b, modalities[i].letter)
		}
	}
	return b
}

// Terms returns the usual terms, and those that the clauses of a price are for.
func (p Price) Terms() []Terms {
	all := []Terms{{}}
	for clause := range strings.SplitSeq(string(p), " ") {
		key, _ := cutClause(clause)
		name, options, special := strings.Cut(key, "@")
		if name != "" && name[0] != '>' {
			if special {
				all = append(all, Terms{Options: strings.Split(options, "@")})
			}
			continue
		}
		service, threshold, _ := strings.Cut(key, ">")
		if t := (Terms{Service: strings.TrimPrefix(service, "@")}); key != "" {
			if threshold != "" {
				t.Input = int64(number(threshold)) + 1
			}
			all = append(all, t)
		}
	}
	return all
}
