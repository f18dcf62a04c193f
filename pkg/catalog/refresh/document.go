// Package refresh reads prices and models from a source that the operator has named, and
// decides which of them are taken. See docs/decisions/0124-refresh-of-prices.md and
// docs/prices.md.
package refresh

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// Bounds of the rows of a document.
const (
	maxRows = 20_000
	maxID   = 256 // bytes of a model's id
)

// document is what a source states.
type document struct {
	issuedAt int64 // Unix milliseconds; 0 if it is not stated
	rows     []row
	models   []addition
	limits   []correction
	refused  int // models and limits that are out of bounds
}

type row struct {
	alias, id string
	price     catalog.Price
}

// add adds a row unless its names are not usable.
func (d *document) add(alias, id string, price catalog.Price) {
	if id != "" && len(id) <= maxID && strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
		d.rows = append(d.rows, row{alias, strings.Clone(id), price})
	}
}

// read reads a document in one of two formats: weir's own, and api.json of models.dev. Of
// the latter one provider after another is in memory, and none that the catalogue lacks.
func read(r io.Reader) (d document, err error) {
	var format, version, issued string
	var prices, models []byte
	m := &members{r: r}
	err = m.each(func(name []byte) bool { return vendorOf(string(name)) != "" || ownMember(string(name)) },
		func(name string, value []byte) error {
			if len(prices)+len(models)+len(value) > MaxPart {
				return fmt.Errorf("its prices and models have more than %d MiB", MaxPart>>20)
			}
			switch name {
			case "format":
				format = gjson.ParseBytes(value).Str
			case "version":
				version = string(value)
			case "issuedAt":
				issued = string(value)
			case "prices":
				prices = bytes.Clone(value)
			case "models":
				models = bytes.Clone(value)
			default:
				d.modelsDev(vendorOf(name), gjson.ParseBytes(value))
			}
			if len(d.rows) > maxRows {
				return errTooManyRows
			}
			return nil
		})
	if err == nil && format == "weir-prices" {
		d = document{}
		err = d.own(gjson.Parse(version), gjson.Parse(issued), gjson.ParseBytes(prices), gjson.ParseBytes(models))
	}
	if err == nil && len(d.rows) > maxRows {
		err = errTooManyRows
	}
	return d, err
}

var errTooManyRows = fmt.Errorf("it has more than %d prices", maxRows)

// ownMember reports whether weir's own format has a member with this name.
func ownMember(name string) bool {
	switch name {
	case "format", "version", "issuedAt", "prices", "models":
		return true
	}
	return false
}

// own reads weir's own format:
//
//	{"format":"weir-prices","version":1,"issuedAt": Unix seconds,"prices":{alias:{id: catalog.Price}},
//	 "models"?:{alias:{id: see ownModel}}}
//
// Aliases that this version does not know are left out.
func (d *document) own(version, issued, prices, models gjson.Result) (err error) {
	if version.Num != 1 {
		return fmt.Errorf("it has version %s of the format; this build reads version 1",
			strings.Trim(shorten(version.Raw), `"`))
	}
	if s := issued.Num; s > 0 && s < 1e11 {
		d.issuedAt = int64(s) * 1000
	}
	prices.ForEach(func(alias, models gjson.Result) bool {
		if !catalog.Has(alias.Str) {
			return true
		}
		models.ForEach(func(id, text gjson.Result) bool {
			price, bad := catalog.ParsePrice(text.String())
			if bad != nil {
				err = fmt.Errorf("the price of %s: %s %w", alias.Str, shorten(id.Str), bad)
				return false
			}
			d.add(alias.Str, id.Str, price)
			return len(d.rows) <= maxRows
		})
		return err == nil && len(d.rows) <= maxRows
	})
	models.ForEach(func(alias, models gjson.Result) bool {
		if catalog.Has(alias.Str) {
			models.ForEach(func(id, model gjson.Result) bool {
				m, ok := ownModel(id.Str, model)
				d.addModel(alias.Str, m, ok)
				return true
			})
		}
		return true
	})
	return err
}

// shorten returns the beginning of a text of a document, for a log line.
func shorten(s string) string { return strconv.QuoteToASCII(s[:min(len(s), 80)]) }

// vendorOf returns the alias of a provider by its id at models.dev, or "". Those that no
// row names are subscriptions, other gateways and vendors without prices here.
func vendorOf(name string) string {
	for _, d := range provider.All() {
		if slices.Contains(d.ModelsDev, name) {
			return d.Alias
		}
	}
	return ""
}

// modelsDev reads a provider of api.json of models.dev: USD per million tokens. Rows that a
// catalog.Price cannot express are left out: tokens of reasoning with a price of their
// own, and a price of nothing, which means an unknown one unless the id says ":free". A
// model is added with or without a price.
//
//	{"models":{id:{"cost":{"input","output","cache_read","cache_write","reasoning","input_audio","output_audio",
//	 "tiers":[{"input",…,"tier":{"type":"context","size"}}]}, and see vendorModel}}}
func (d *document) modelsDev(alias string, v gjson.Result) {
	v.Get("models").ForEach(func(id, model gjson.Result) bool {
		m, taken, ok := vendorModel(id.Str, model)
		switch {
		case isBuiltIn(alias, id.Str):
			d.correct(alias, &m)
		case taken:
			d.addModel(alias, m, ok)
		}
		cost := model.Get("cost")
		in, out, reasoning := amount(cost, "input"), amount(cost, "output"), cost.Get("reasoning")
		free := in == 0 && out == 0
		if in < 0 || out < 0 || reasoning.Exists() && reasoning.Num != out || free && !strings.HasSuffix(id.Str, ":free") {
			return true
		}
		ids := []string{id.Str}
		// Claude without a prefix is a region's, which costs what one of the US does
		// (https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock).
		// models.dev states the global price for it.
		if bare, us := strings.CutPrefix(id.Str, "us."); alias == "bedrock" && strings.HasPrefix(bare, "anthropic.claude-") {
			if !us {
				return true
			}
			ids = append(ids, bare)
		}
		for _, id := range ids {
			if price := vendorPrice(alias, id, cost); price != "" {
				d.add(alias, id, price)
			}
		}
		return len(d.rows) <= maxRows
	})
}

// vendorPrice returns the price that a cost of models.dev stands for, or "". A cost states
// no tiers of service and no media: while the rates are those of the catalogue its price
// stays; with other rates the media stay, and the tiers are unknown.
func vendorPrice(alias, id string, cost gjson.Result) catalog.Price {
	built := catalog.PriceOf(alias, id)
	rates := catalog.NoRates()
	rates[catalog.PerInput], rates[catalog.PerOutput] = amount(cost, "input"), amount(cost, "output")
	rates[catalog.PerCacheRead], rates[catalog.PerCacheWrite] = amount(cost, "cache_read"), amount(cost, "cache_write")
	usual, _ := built.Rates(catalog.Terms{})
	same := built != ""
	for u := catalog.PerInput; u <= catalog.PerCacheWrite; u++ {
		if rates[u] == 0 && u >= catalog.PerCacheRead {
			rates[u] = -1 // as in the catalogue
		}
		same = same && rates[u] == usual[u]
	}
	if same {
		return built
	}
	steps, ok := vendorSteps(alias, id, cost)
	if !ok || steps == "" && strings.Contains(string(built), ">") {
		return "" // the rates above the threshold have changed too, to what is not stated
	}
	claudeHour(id, &rates)
	text := rates.Price() + steps
	audio := catalog.NoRates()
	audio[catalog.PerAudioInput], audio[catalog.PerAudioOutput] = amount(cost, "input_audio"), amount(cost, "output_audio")
	if more := audio.Price(); more != "" {
		text += " " + more
	}
	for clause := range strings.SplitSeq(string(built), " ") {
		name, _, named := strings.Cut(clause, "=")
		if named && name[0] != '@' && name[0] != '>' && !strings.Contains(string(text), " "+name+"=") {
			text += catalog.Price(" " + clause)
		}
	}
	price, err := catalog.ParsePrice(string(text))
	if err != nil {
		return ""
	}
	return price
}

// vendorSteps returns the clauses of the rates of long requests, each after a blank. Those of
// xAI begin at the size itself: "Requests whose prompt reaches 200k tokens",
// https://docs.x.ai/developers/models. ok is false for one that cannot be expressed.
func vendorSteps(alias, id string, cost gjson.Result) (steps catalog.Price, ok bool) {
	ok = true
	step := func(v gjson.Result, over int64) {
		r := catalog.NoRates()
		r[catalog.PerInput], r[catalog.PerOutput] = amount(v, "input"), amount(v, "output")
		r[catalog.PerCacheRead], r[catalog.PerCacheWrite] = amount(v, "cache_read"), amount(v, "cache_write")
		claudeHour(id, &r)
		if alias == "xai" {
			over--
		}
		ok = ok && over > 0 && r[catalog.PerInput] >= 0 && r[catalog.PerOutput] >= 0
		steps += catalog.Price(fmt.Sprintf(" >%d=%s", over, r.Price()))
	}
	if over := cost.Get("context_over_200k"); over.Exists() && !cost.Get("tiers").Exists() {
		step(over, 200_000)
	}
	cost.Get("tiers").ForEach(func(_, v gjson.Result) bool {
		ok = ok && v.Get("tier.type").Str == "context"
		step(v, v.Get("tier.size").Int())
		return ok
	})
	return steps, ok
}

// claudeHour sets the rate of caching for an hour, which models.dev does not state: Claude's
// is twice that of input
// (https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing).
func claudeHour(id string, r *catalog.Rates) {
	if strings.Contains(id, "claude") && r[catalog.PerCacheWrite] > 0 {
		r[catalog.PerCacheWriteHour] = round(2 * r[catalog.PerInput])
	}
}

// amount returns a number of USD, or -1.
func amount(v gjson.Result, name string) float64 {
	n := v.Get(name)
	if n.Type != gjson.Number || !(n.Num >= 0) || math.IsInf(n.Num, 0) {
		return -1
	}
	return round(n.Num)
}

// round removes what binary fractions add.
func round(f float64) float64 { return math.Round(f*1e9) / 1e9 }
