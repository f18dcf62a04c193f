package refresh

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weir/pkg/catalog"
)

// Bounds of what a document may change.
const (
	minRows    = 10            // of a document that is a price list
	maxStored  = 1<<20 - 8<<10 // bytes of all rows as they are stored: a row of the registry has at most 1 MiB
	maxChange  = 10            // the largest factor between an old and a new rate
	maxHeldOf  = 5             // at most one in five prices may be held back
	maxMillion = 2000          // USD for a million tokens or characters; the dearest of the catalogue is 600
	maxOne     = 10            // USD for one of anything else; the dearest of the catalogue is 1.92
	maxNamed   = 10            // models of Update.Dear
	issueAhead = 24 * 60 * 60 * 1000
)

// Source is where prices come from.
type Source struct {
	URL string
	Key ed25519.PublicKey // nil for a source that is not signed
}

// Issued reports whether stored prices are of this source, as it is checked now.
func (s *Source) Issued(p *catalog.Update) bool {
	return p.Source == s.URL && (p.Signed || s.Key == nil)
}

// ParseKey reads a public key: 32 bytes in base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("must be an Ed25519 public key, 32 bytes in base64")
	}
	return raw, nil
}

// Verify checks the detached signature of a document, in base64 over its exact bytes.
func (s *Source) Verify(document, signature []byte) error {
	if s.Key == nil {
		return nil
	}
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
	if err != nil || len(sig) != ed25519.SignatureSize || !ed25519.Verify(s.Key, document, sig) {
		return errors.New("the signature is not one of PRICES_KEY")
	}
	return nil
}

// Take returns what is taken of a document that Verify has accepted. before is what was
// last taken of this source, or nothing. The error says why nothing of the document is
// taken, or is that of r.
func (s *Source) Take(r io.Reader, before *catalog.Update, now int64) (*catalog.Update, error) {
	d, err := read(r)
	if err != nil {
		return nil, err
	}
	signed := s.Key != nil
	switch {
	case len(d.rows) < minRows:
		return nil, fmt.Errorf("it has %d prices; a price list has at least %d", len(d.rows), minRows)
	case signed && d.issuedAt == 0:
		return nil, errors.New("a signed document must state issuedAt")
	case signed && d.issuedAt > now+issueAhead:
		return nil, errors.New("issuedAt is in the future")
	case signed && d.issuedAt < before.IssuedAt:
		return nil, errors.New("issuedAt is before that of the last document")
	}
	slices.SortStableFunc(d.rows, func(a, b row) int {
		if c := strings.Compare(a.alias, b.alias); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	d.rows = slices.CompactFunc(d.rows, func(a, b row) bool { return a.alias == b.alias && a.id == b.id })
	p := &catalog.Update{Source: s.URL, Signed: signed, IssuedAt: d.issuedAt, FetchedAt: now}
	known := 0
	var dear []string
	var text strings.Builder
	for _, r := range d.rows {
		built := catalog.PriceOf(r.alias, r.id)
		last, base := before.Price(r.alias, r.id), built
		base = cmp.Or(base, last)
		if base != "" {
			known++
		}
		price := r.price
		if built == "" && tooDear(price) {
			p.Held++
			if len(dear) < maxNamed {
				dear = append(dear, r.alias+"/"+r.id)
			}
			if price = last; tooDear(price) {
				price = ""
			}
		} else if base != "" && implausible(base, price) || base == "" && !signed && price.Free() &&
			!strings.HasSuffix(r.id, ":free") {
			p.Held++
			price = last
		}
		if price == "" || price == built {
			continue
		}
		p.Rows++
		text.WriteString(r.alias + "/" + r.id + "\t" + string(price) + "\n")
	}
	p.Text, p.Dear = text.String(), strings.Join(dear, ", ")
	room := maxStored - stored(p.Text)
	switch {
	case p.Held*maxHeldOf > max(known, minRows):
		return nil, fmt.Errorf("%d of %d prices are more than %d times what they were, or the reverse, or dearer than any vendor's", p.Held, len(d.rows), maxChange)
	case room < 0:
		return nil, errors.New("its new prices have more than 1 MiB")
	}
	p.LimitText, p.Limits = d.limitLines(room)
	room -= stored(p.LimitText)
	var refused int
	p.ModelText, p.AddedModels, refused = d.lines(min(room, maxModelText))
	p.RefusedModels = d.refused + refused
	return p, nil
}

// stored returns the number of bytes of a text in the JSON that is stored.
func stored(text string) int {
	raw, _ := json.Marshal(text)
	return len(raw)
}

// implausible reports whether a price changes by more than a vendor changes it at once:
// by a factor of more than ten, between free and not free, or to unknown.
func implausible(before, after catalog.Price) bool {
	was, _ := before.Rates(catalog.Terms{})
	is, _ := after.Rates(catalog.Terms{})
	least, most := spread(before)
	low, high := spread(after)
	var tokens float64 // the highest rate of any token
	for u := catalog.Unit(0); u < catalog.Units; u++ {
		if u.Token() {
			tokens = max(tokens, most[u])
		}
	}
	for u := catalog.Unit(0); u < catalog.Units; u++ {
		switch {
		case was[u] >= 0 && is[u] >= 0 && apart(was[u], is[u]):
			return true
		case most[u] >= 0 && high[u] < 0:
			if u == catalog.PerInput || u == catalog.PerOutput || !u.Token() {
				return true
			}
		case most[u] >= 0 && (apart(most[u], max(high[u], most[u])) || apart(least[u], min(low[u], least[u]))):
			return true
		case most[u] < 0 && high[u] >= 0 && (!u.Token() || high[u] > maxChange*tokens):
			return true // it was not billed in this unit before
		}
	}
	return false
}

// tooDear reports whether a rate of a price, on any terms, is above what any vendor asks.
func tooDear(p catalog.Price) bool {
	_, most := spread(p)
	for u, f := range most {
		if catalog.Unit(u).Million() && f > maxMillion || !catalog.Unit(u).Million() && f > maxOne {
			return true
		}
	}
	return false
}

// apart reports whether one rate is more than ten times the other.
func apart(a, b float64) bool {
	return (a == 0) != (b == 0) || a > maxChange*b || b > maxChange*a
}

// spread returns the lowest and the highest rate of each unit on all terms that a price
// distinguishes; -1 for a unit without one.
func spread(p catalog.Price) (least, most catalog.Rates) {
	least, most = catalog.NoRates(), catalog.NoRates()
	for _, t := range p.Terms() {
		r, _ := p.Rates(t)
		for u, f := range r {
			if f < 0 {
				continue
			}
			if most[u] < 0 {
				least[u] = math.Inf(1)
			}
			least[u], most[u] = min(least[u], f), max(most[u], f)
		}
	}
	return least, most
}
