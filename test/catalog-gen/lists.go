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
	// Claude costs on Vertex what it costs at Anthropic
	// (https://cloud.google.com/vertex-ai/generative-ai/pricing#claude-models), but for long
	// prompts, whose step is the list's.
	for key, r := range all["vertex"] {
		if own, ok := all["anthropic"][key]; ok && r.price == "" && strings.HasPrefix(r.id, "claude-") {
			base, _, _ := strings.Cut(own.price, " ")
			usual, step, _ := strings.Cut(list["vertex/"+r.id+"@default"].price, " ")
			r.price = own.price
			if usual == base && step != "" {
				r.price = base + " " + step
			}
			all["vertex"][key] = r
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

// writeList writes the extract from the binary of the package.
func writeList(dir, to string) error {
	ball, err := pack(dir, listPackage, false)
	if err != nil {
		return err
	}
	got, err := unpack(string(ball), func(name string) bool { return name == "bin/opencode" })
	if err != nil {
		return err
	}
	raw, err := literal([]byte(got["bin/opencode"]), `deepinfra:{id:"deepinfra",env:[`)
	if err != nil {
		return err
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
		return err
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
	slices.Sort(lines)
	return os.WriteFile(filepath.FromSlash(to), []byte(strings.Join(lines, "")), 0o644)
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

// literal returns the JavaScript object that begins before start, as JSON: names are
// quoted, and !0 and !1 are true and false. It has texts in double quotes only.
func literal(text []byte, start string) ([]byte, error) {
	at := bytes.Index(text, []byte("{"+start))
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
