package catalog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Price is what a model costs, as text, in USD. "" is no price at all. Its clauses
// stand between blanks:
//
//	4/20/0.4/5/8                 per million tokens: input/output/cache read/cache write/cache write for an hour
//	>200000=6/22.5/0.6           the same for a call with more than 200,000 input tokens
//	@flex=2/10/0.2               the same for a call of another service tier; @flex>200000= is possible
//	audioInput=1 audioOutput=20  per million tokens that are not text
//	audioCacheRead=0.4           per million tokens of audio that were read from the cache; imageCacheRead too
//	image@hd@1024x1792=0.12      per image with these options; the first clause that fits counts
//	audioInput@flex=0.5          a service tier is such an option of any part but the first line's
//	image=0.04 second=0.3 minute=0.006 request=0.005
//	search=0.01                  per search of the web by a tool that the vendor runs; see ToolPrice for others
//	character=15                 per million characters
//
// A missing or empty part is unknown.
type Price string

// Unit is what a rate counts.
type Unit uint8

// The units of rates.
const (
	PerInput          Unit = iota // tokens of text that are neither read from nor written to the cache
	PerOutput                     // tokens of text, with those of reasoning
	PerCacheRead                  // tokens
	PerCacheWrite                 // tokens that the vendor keeps for its usual time, such as 5 minutes
	PerCacheWriteHour             // tokens that it keeps for an hour
	PerAudioInput                 // tokens
	PerAudioOutput                // tokens
	PerImageInput                 // tokens
	PerImageOutput                // tokens
	PerAudioCacheRead             // tokens
	PerImageCacheRead             // tokens
	PerCharacter
	PerImage
	PerSecond // of audio or video
	PerRequest

	// The units of tools that the vendor runs.
	PerSearch     // of the web
	PerGrounded   // answer with such searches, however many
	PerMaps       // answer that a service of maps was asked for
	PerFileSearch // of files or documents that the vendor stores
	PerCode       // container in which the vendor runs code, or run of it

	Units = iota // their number
)

// positional is the number of units whose rates have a place between slashes instead of
// a name.
const positional = int(PerAudioInput)

// unitNames are the names of the other units in a Price. A minute is 60 seconds.
var unitNames = [Units]string{
	PerAudioInput: "audioInput", PerAudioOutput: "audioOutput", PerImageInput: "imageInput", PerImageOutput: "imageOutput",
	PerAudioCacheRead: "audioCacheRead", PerImageCacheRead: "imageCacheRead",
	PerCharacter: "character", PerImage: "image", PerSecond: "second", PerRequest: "request",
	PerSearch: "search", PerGrounded: "grounded", PerMaps: "maps", PerFileSearch: "fileSearch", PerCode: "code",
}

// Million reports whether a rate of the unit is for a million.
func (u Unit) Million() bool { return u <= PerCharacter }

// Token reports whether the unit is a kind of token.
func (u Unit) Token() bool { return u <= PerImageCacheRead }

// Tool reports whether the unit counts what tools of the vendor do.
func (u Unit) Tool() bool { return u >= PerSearch }

// Rates are the rates of a call in USD. A negative one is unknown.
type Rates [Units]float64

// NoRates returns Rates of which none is known.
func NoRates() (r Rates) {
	for u := range r {
		r[u] = -1
	}
	return r
}

// Terms are what the rates of a call depend on.
type Terms struct {
	Input   int64    // tokens, with those of the cache
	Service string   // service tier; "" is the standard one
	Options []string // of an image or a video: quality, size, resolution; or of a tool
}

// Rates returns the rates of a call. known is false without a price, and if the price
// depends on terms and has nothing for these.
func (p Price) Rates(t Terms) (r Rates, known bool) {
	r = NoRates()
	if p == "" {
		return r, false
	}
	var other [Units]bool // has a clause, but none that fits
	above := int64(-1)    // threshold of the clause that the positional rates are from
	for clause := range strings.SplitSeq(string(p), " ") {
		key, value := cutClause(clause)
		if name, options, _ := strings.Cut(key, "@"); name != "" && name[0] != '>' {
			u, f := namedRate(name, value)
			switch {
			case u == Units || r[u] >= 0:
			case options == "" || t.fits(options):
				r[u], other[u] = f, false
			case !Unit(u).Token() && !Unit(u).Tool():
				other[u] = true
			}
			continue
		}
		service, threshold, _ := strings.Cut(key, ">")
		over := int64(number(threshold))
		if strings.TrimPrefix(service, "@") != t.Service || over > 0 && t.Input <= over || over < above {
			other[PerInput] = above < 0
			continue
		}
		above, other[PerInput] = over, false
		for u := range positional {
			var part string
			part, value, _ = strings.Cut(value, "/")
			r[u] = rate(part)
		}
	}
	return r, !slices.Contains(other[:], true)
}

// cutClause returns the key of a clause, which is "" for the token rates on the usual
// terms, and its value.
func cutClause(clause string) (key, value string) {
	if key, value, ok := strings.Cut(clause, "="); ok {
		return key, value
	}
	return "", clause
}

// namedRate returns the unit with a name in a Price, or Units, and its rate.
func namedRate(name, value string) (int, float64) {
	f := rate(value)
	if name == "minute" {
		return int(PerSecond), f / 60
	}
	for u := positional; u < Units; u++ {
		if unitNames[u] == name {
			return u, f
		}
	}
	return Units, f
}

// rate reads a rate; a negative one is unknown.
func rate(s string) float64 {
	if s == "" {
		return -1
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return -1
	}
	return f
}

// fits reports whether all options of a clause, with an @ between them, are the service
// tier or among the options of a call.
func (t *Terms) fits(clause string) bool {
	for o := range strings.SplitSeq(clause, "@") {
		if o != t.Service && !slices.ContainsFunc(t.Options, func(s string) bool { return strings.EqualFold(s, o) }) {
			return false
		}
	}
	return true
}

// Bounds of a price.
const (
	maxPrice   = 500 // bytes
	maxClauses = 16
	maxRate    = 100_000 // USD
)

// ParsePrice checks a text and returns it as a Price. The error says what is wrong, and
// what a price is.
func ParsePrice(text string) (Price, error) {
	clauses := strings.Fields(text)
	if len(clauses) == 0 || len(text) > maxPrice {
		return "", fmt.Errorf("must be a price of 1 to %d characters, such as 4/20/0.4/5", maxPrice)
	}
	if len(clauses) > maxClauses {
		return "", fmt.Errorf("must have at most %d clauses", maxClauses)
	}
	for _, clause := range clauses {
		if !validClause(clause) {
			return "", fmt.Errorf("has %q: write input/output/cache read/cache write/cache write for an hour in USD per million tokens, or NAME=USD with one of %s", clause, clauseNames())
		}
	}
	return Price(strings.Join(clauses, " ")), nil
}

// clauseNames lists the names of clauses.
func clauseNames() string {
	return strings.Join(unitNames[positional:], ", ") + ", minute"
}

func validClause(clause string) bool {
	key, value := cutClause(clause)
	name, special, _ := strings.Cut(key, "@")
	if name != "" && name[0] != '>' {
		u, _ := namedRate(name, value)
		return u < Units && !strings.Contains(special, ">") && validRate(value)
	}
	_, threshold, limited := strings.Cut(key, ">")
	if n := number(threshold); limited && (!digits(threshold) || len(threshold) > 9 || n == 0) {
		return false
	}
	if key == "" && strings.HasPrefix(clause, "=") || key == "@" {
		return false
	}
	parts := strings.Split(value, "/")
	known := false
	for _, part := range parts {
		if part != "" && !validRate(part) {
			return false
		}
		known = known || part != ""
	}
	return known && len(parts) <= positional
}

// validRate reports whether s is a decimal number of USD that a vendor may ask.
func validRate(s string) bool {
	whole, fraction, ok := strings.Cut(s, ".")
	return digits(whole) && (!ok || digits(fraction)) && rate(s) >= 0 && rate(s) <= maxRate
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// With returns the price with the clauses of another one, which count where p has none
// for a unit. A price that is unknown or free stays as it is.
func (p Price) With(more Price) Price {
	if p == "" || more == "" || p.Free() {
		return p
	}
	return p + " " + more
}

// Free reports whether the model costs nothing, however it is used.
func (p Price) Free() bool {
	if p == "" {
		return false
	}
	for clause := range strings.SplitSeq(string(p), " ") {
		_, value := cutClause(clause)
		for part := range strings.SplitSeq(value, "/") {
			if part != "" && rate(part) != 0 {
				return false
			}
		}
	}
	return true
}

// Price writes rates that hold on all terms.
func (r Rates) Price() Price {
	var b []byte
	for u, f := range r[:positional] {
		if f >= 0 {
			b = append(b, "////"[:u-strings.Count(string(b), "/")]...)
			b = strconv.AppendFloat(b, f, 'f', -1, 64)
		}
	}
	for u := positional; u < Units; u++ {
		if r[u] < 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, unitNames[u]...), '=')
		b = strconv.AppendFloat(b, r[u], 'f', -1, 64)
	}
	return Price(b)
}

// PriceOf returns the price of a model in the static catalogue, or "".
func PriceOf(alias, id string) Price {
	s := find(alias)
	if s == nil {
		return ""
	}
	body := s.body()
	for at := search(body, id); at < len(body) && named(body[at:], id); {
		line := body[at : at+strings.IndexByte(body[at:], '\n')]
		if p := parse(line).Price; p != "" {
			return p
		}
		at += len(line) + 1
	}
	return ""
}
