package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// entry is a model of the catalogue package. Its "input" knows only text and
// image, so the other kinds of input stay unknown. Chat models are listed
// there only when they can call tools, as its README says.
type entry struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Type      string   `json:"type"` // chat, image, classifier
	Reasoning *bool    `json:"reasoning"`
	Input     []string `json:"input"`
	Output    []string `json:"output"`
	Cost      struct {
		rates
		Tiers []struct {
			Above int `json:"inputTokensAbove"`
			rates
		} `json:"tiers"`
	} `json:"cost"`
	Context int `json:"contextWindow"`
	Max     int `json:"maxTokens"`
}

// rates are USD per million tokens.
type rates struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// text writes the rates as in catalog.Price. Claude is cached for an hour at twice the
// price of input (https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing),
// which the packages do not state.
func (r rates) text(id string) string {
	if strings.Contains(id, "claude") && r.CacheWrite > 0 {
		return price(r.Input, r.Output, r.CacheRead, r.CacheWrite, round(2*r.Input))
	}
	return price(r.Input, r.Output, r.CacheRead, r.CacheWrite)
}

// round removes what binary fractions add.
func round(f float64) float64 { return math.Round(f*1e9) / 1e9 }

// readChats adds the chat and image models of one catalogue file.
func readChats(f files, c chatList, to list) error {
	name := "dist/providers/data/" + c.file + ".json"
	var groups map[string]map[string]entry
	if err := json.Unmarshal([]byte(f[name]), &groups); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := 0
	for _, models := range groups {
		for _, m := range models {
			var r row
			switch m.Type {
			case "chat":
				r = row{id: m.ID, kind: "l", context: m.Context, max: m.Max, out: "t", caps: "T"}
				if m.Reasoning != nil {
					r.caps += letter("R", *m.Reasoning)
				}
				r.caps += letter("V", has(m.Input, "image"))
			case "image":
				r = row{id: m.ID, kind: "i", caps: "I"}
				if has(m.Output, "text") {
					r.out += "t"
				}
				r.out += "i"
			default:
				continue // classifiers are no kind of model here
			}
			for _, in := range []string{"text", "image"} {
				if has(m.Input, in) {
					r.in += in[:1]
				}
			}
			// A price of nothing means an unknown one, except where the id
			// says that the model is free.
			if p := m.Cost; p.Input > 0 || p.Output > 0 || strings.HasSuffix(m.ID, ":free") {
				r.price = p.text(m.ID)
				for _, t := range p.Tiers {
					if c.alias == "xai" {
						t.Above-- // a call of exactly the size pays more, https://docs.x.ai/developers/models
					}
					r.price += fmt.Sprintf(" >%d=%s", t.Above, t.text(m.ID))
				}
			}
			if m.Name != "" {
				r.name = m.Name
			}
			to.add(r)
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: no model", name)
	}
	return nil
}

func letter(s string, on bool) string {
	if on {
		return s
	}
	return strings.ToLower(s)
}

func has(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// price writes input/output/cache read/cache write/cache write for an hour; cache
// prices of nothing are unknown and left out.
func price(v ...float64) string {
	var parts []string
	for i, f := range v {
		s := ""
		if f > 0 || i < 2 {
			s = strconv.FormatFloat(f, 'f', -1, 64)
		}
		parts = append(parts, s)
	}
	return strings.TrimRight(strings.Join(parts, "/"), "/")
}

var quoted = regexp.MustCompile(`'([^']+)'|"([^"]+)"`)
var key = regexp.MustCompile(`(?m)^  (?:readonly )?(?:'([^']+)'|"([^"]+)"|([A-Za-z_$][\w$]*))\??:`)

// readIDs reads the ids of one declaration of a type file: a union of string
// literals, a read-only tuple, or the keys of an object.
func readIDs(f files, name string) ([]string, error) {
	src, ok := f["dist/index.d.ts"]
	if !ok {
		return nil, errors.New("no type file")
	}
	var got []string
	if m := regexp.MustCompile(`(?m)^type ` + name + ` =([^;]*);`).FindStringSubmatch(src); m != nil {
		got = captures(quoted, m[1])
	} else if m := regexp.MustCompile(`(?m)^declare const ` + name + `: readonly \[([^\]]*)\]`).FindStringSubmatch(src); m != nil {
		got = captures(quoted, m[1])
	} else if m := regexp.MustCompile(`(?ms)^declare const ` + name + `: \{\n(.*?)^\};`).FindStringSubmatch(src); m != nil {
		got = captures(key, m[1])
	}
	if len(got) == 0 {
		return nil, errors.New("the declaration was not found or is empty")
	}
	sort.Strings(got)
	return got, nil
}

// captures returns the first non-empty group of every match.
func captures(re *regexp.Regexp, s string) []string {
	var got []string
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		for _, g := range m[1:] {
			if g != "" {
				got = append(got, g)
				break
			}
		}
	}
	return got
}
