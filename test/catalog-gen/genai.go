package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pkg/catalog"
)

// genaiPackage has the prices that its makers collect from vendors' pages (MIT) of
// 2026-09-23, as a JavaScript array.
var genaiPackage = source{"@pydantic/genai-prices", "0.1.8", "8c9ba41e46719abc54a0ae4756ba5f2b5a768b8117fb29f40c5ca7ed3146eb5b"}

// genai is the extract of that list for the ids of the catalogue, in the form of
// modelsDev; -lists writes it.
//
//go:embed lists/genai-prices.tsv
var genai string

// genaiVendors are the providers of the list by alias, as vendors are those of models.dev.
// Where Google has none of Claude or Azure none of a GPT, the maker's own counts, as in the list.
var genaiVendors = map[string]string{
	"openai": "openai", "anthropic": "anthropic", "gemini": "google", "vertex": "google anthropic", "bedrock": "aws",
	"azure": "azure openai", "mistral": "mistral", "groq": "groq", "xai": "x-ai",
	"deepseek": "deepseek", "together": "together", "fireworks": "fireworks", "openrouter": "openrouter", "cohere": "cohere",
	"voyage": "voyageai", "cerebras": "cerebras", "pplx": "perplexity", "zai": "zai", "moonshot": "moonshotai",
	"minimax": "minimax", "cf": "cloudflare",
}

// genaiTime is when prices count that depend on the day or the hour.
var genaiTime = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)

type genaiModel struct {
	Match   genaiMatch
	Context float64 `json:"context_window"`
	Prices  genaiPrices
}

// genaiMatch is a condition on an id in lower case; its one field that is set counts.
type genaiMatch struct {
	Or, And    []genaiMatch
	Equals     string
	StartsWith string `json:"starts_with"`
	EndsWith   string `json:"ends_with"`
	Contains   string
	Regex      string
}

func (m genaiMatch) matches(id string) bool {
	here := func(m genaiMatch) bool { return m.matches(id) }
	switch {
	case m.Or != nil:
		return slices.ContainsFunc(m.Or, here)
	case m.And != nil:
		return !slices.ContainsFunc(m.And, func(m genaiMatch) bool { return !m.matches(id) })
	case m.StartsWith != "":
		return strings.HasPrefix(id, strings.ToLower(m.StartsWith))
	case m.EndsWith != "":
		return strings.HasSuffix(id, strings.ToLower(m.EndsWith))
	case m.Contains != "":
		return strings.Contains(id, strings.ToLower(m.Contains))
	case strings.HasPrefix(m.Regex, "^(?!"): // what Go's expressions lack
		return !regexp.MustCompile("^(?:" + m.Regex[len("^(?!"):]).MatchString(id)
	case m.Regex != "":
		return regexp.MustCompile(m.Regex).MatchString(id)
	}
	return id == strings.ToLower(m.Equals)
}

// genaiPrices are the rates by unit, such as input_mtok; of several sets, the last one
// whose condition holds at genaiTime.
type genaiPrices map[string]genaiRate

func (p *genaiPrices) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		return json.Unmarshal(b, (*map[string]genaiRate)(p))
	}
	var sets []struct {
		Constraint struct {
			Start string `json:"start_date"`
			From  string `json:"start_time"` // 01:00:00Z
			To    string `json:"end_time"`
		}
		Prices map[string]genaiRate
	}
	err := json.Unmarshal(b, &sets)
	for _, s := range sets {
		c, hour := s.Constraint, genaiTime.Format("15:04:05Z")
		if c.Start <= genaiTime.Format(time.DateOnly) && (c.From == "" || c.From <= hour && hour < c.To) {
			*p = s.Prices
		}
	}
	return err
}

// genaiRate is a rate, and the rates of calls with more input tokens than a tier's start.
type genaiRate struct {
	Base  float64
	Tiers []struct{ Start, Price float64 }
}

func (r *genaiRate) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return json.Unmarshal(b, &r.Base)
	}
	type plain genaiRate
	return json.Unmarshal(b, (*plain)(r))
}

// over returns the rate of a call with more than start input tokens.
func (r genaiRate) over(start float64) float64 {
	f := r.Base
	for _, t := range r.Tiers {
		if t.Start <= start {
			f = t.Price
		}
	}
	return f
}

// text writes the rates of tokens as in catalog.Price; "" without any.
func (p genaiPrices) text() string {
	if p["input_mtok"].Base == 0 && p["output_mtok"].Base == 0 {
		return ""
	}
	starts := map[float64]bool{0: true}
	for _, r := range p {
		for _, t := range r.Tiers {
			starts[t.Start] = true
		}
	}
	var clauses []string
	for _, start := range slices.Sorted(maps.Keys(starts)) {
		var rates []float64
		for _, unit := range []string{"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"} {
			rates = append(rates, p[unit].over(start))
		}
		clause := price(rates...)
		if start > 0 {
			clause = fmt.Sprintf(">%.0f=%s", start, clause)
		}
		clauses = append(clauses, clause)
	}
	for _, c := range []struct{ name, unit string }{
		{"audioInput", "input_audio_mtok"}, {"audioOutput", "output_audio_mtok"},
		{"imageInput", "input_image_mtok"}, {"imageOutput", "output_image_mtok"},
	} {
		if f := p[c.unit].Base; f > 0 {
			clauses = append(clauses, c.name+"="+strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return strings.Join(clauses, " ")
}

// genaiLines returns the lines of the extract.
func genaiLines(dir string) ([]string, error) {
	ball, err := pack(dir, genaiPackage, false)
	if err != nil {
		return nil, err
	}
	const file = "dist/index.cjs"
	got, err := unpack(string(ball), func(name string) bool { return name == file })
	if err != nil {
		return nil, err
	}
	raw, err := literal([]byte(got[file]), `[{id:"anthropic",`)
	if err != nil {
		return nil, err
	}
	var providers []struct {
		ID     string
		Models []genaiModel
	}
	if err := json.Unmarshal(raw, &providers); err != nil {
		return nil, err
	}
	models := map[string][]genaiModel{}
	for _, p := range providers {
		models[p.ID] = p.Models
	}
	var lines []string
	for alias, names := range genaiVendors {
		var list []genaiModel
		for name := range strings.FieldsSeq(names) {
			if models[name] == nil {
				return nil, fmt.Errorf("no provider %q", name)
			}
			list = append(list, models[name]...)
		}
		for _, m := range catalog.Models(alias) {
			id := strings.ToLower(m.ID)
			if i := slices.IndexFunc(list, func(g genaiModel) bool { return g.Match.matches(id) }); i >= 0 {
				lines = append(lines, fmt.Sprintf("%s/%s\t%s\t%.0f\t0\t\n", alias, m.ID, list[i].Prices.text(), list[i].Context))
			}
		}
	}
	return lines, nil
}
