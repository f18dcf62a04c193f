package catalog

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Update is the prices from a source that the operator has named, where they differ from
// those of the static catalogue. Times are Unix milliseconds. A nil or zero Update has
// none.
type Update struct {
	Source    string `json:"source"`
	Signed    bool   `json:"signed"`             // the signature of the source was verified
	IssuedAt  int64  `json:"issuedAt,omitempty"` // as a signed source states it
	FetchedAt int64  `json:"fetchedAt,omitempty"`
	Rows      int    `json:"rows"`
	Held      int    `json:"held"` // prices of the source that were not taken, because they change too much
	// Text has a line for each row, sorted by alias, then id, by bytes:
	//
	//	alias/id  price
	//
	// with a tab between them.
	Text string `json:"text,omitempty"`
}

// ReadUpdate reads what encoding/json has written of an Update. ok is false for anything
// else.
func ReadUpdate(raw []byte) (p Update, ok bool) {
	if !gjson.ValidBytes(raw) {
		return p, false
	}
	v := gjson.ParseBytes(raw)
	p = Update{
		Source: v.Get("source").String(), Signed: v.Get("signed").Bool(), IssuedAt: v.Get("issuedAt").Int(),
		FetchedAt: v.Get("fetchedAt").Int(), Rows: int(v.Get("rows").Int()), Held: int(v.Get("held").Int()),
		Text: v.Get("text").String(),
	}
	return p, p.FetchedAt > 0 && (p.Text == "" || strings.HasSuffix(p.Text, "\n"))
}

// At returns when the prices were fetched; 0 for none.
func (p *Update) At() int64 {
	if p == nil {
		return 0
	}
	return p.FetchedAt
}

// PriceOf returns the price of a model: that of the source, else that of the static
// catalogue, else "".
func (p *Update) PriceOf(alias, id string) Price {
	if p != nil && p.Text != "" {
		if price := p.Price(alias, id); price != "" {
			return price
		}
	}
	return PriceOf(alias, id)
}

// Price returns the price that the source has for a model, or "".
func (p *Update) Price(alias, id string) Price {
	if p == nil {
		return ""
	}
	low, high := 0, len(p.Text)
	for low < high {
		mid := low + (high-low)/2
		start := strings.LastIndexByte(p.Text[low:mid], '\n') + 1 + low
		line, _, _ := strings.Cut(p.Text[start:], "\n")
		name, price, _ := strings.Cut(line, "\t")
		lineAlias, lineID, _ := strings.Cut(name, "/")
		c := strings.Compare(lineAlias, alias)
		if c == 0 {
			c = strings.Compare(lineID, id)
		}
		switch {
		case c == 0:
			return Price(price)
		case c < 0:
			low = start + len(line) + 1
		default:
			high = start
		}
	}
	return ""
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
