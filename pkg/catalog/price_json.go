package catalog

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// rateNames are the names of units in JSON.
var rateNames = [Units]string{
	PerInput: "input", PerOutput: "output", PerCacheRead: "cache_read", PerCacheWrite: "cache_write",
	PerCacheWriteHour: "cache_write_1h", PerAudioInput: "audio_input", PerAudioOutput: "audio_output",
	PerImageInput: "image_input", PerImageOutput: "image_output",
	PerAudioCacheRead: "audio_cache_read", PerImageCacheRead: "image_cache_read", PerCharacter: "character",
	PerImage: "image", PerSecond: "second", PerRequest: "request",
	PerSearch: "search", PerGrounded: "grounded", PerMaps: "maps", PerFileSearch: "file_search", PerCode: "code",
}

// AppendJSON appends the rates on the usual terms as the members of an object, and the
// others, in the order in which they count, as its last member:
//
//	{"input":1.25,"output":10,"image":0.04,"variants":[
//	 {"above_input_tokens":200000,"service_tier":"flex","input":2.5,"output":15},
//	 {"options":["hd","1024x1792"],"image":0.12}]}
//
// The options of a variant are all required: of an image, a video or a tool, or a service
// tier. A variant with rates of text tokens has those of all their kinds. Rates are in USD,
// for a million of the units that Unit.Million reports.
func (p Price) AppendJSON(b []byte) []byte {
	r, _ := p.Rates(Terms{})
	b = r.AppendJSON(append(b, '{'))
	array := false
	var usual [Units]bool // has had a clause that always fits: later ones never count
	for clause := range strings.SplitSeq(string(p), " ") {
		key, value := cutClause(clause)
		v := NoRates()
		name, options, special := strings.Cut(key, "@")
		var terms []byte
		if name != "" && name[0] != '>' {
			u, f := namedRate(name, value)
			if u == Units || usual[u] {
				continue
			}
			if usual[u] = !special; !special {
				continue
			}
			v[u] = f
			terms = append(terms, `"options":[`...)
			for o := range strings.SplitSeq(options, "@") {
				terms = append(gjson.AppendJSONString(terms, o), ',')
			}
			terms[len(terms)-1] = ']'
		} else {
			if key == "" {
				continue
			}
			service, threshold, _ := strings.Cut(key, ">")
			if threshold != "" {
				terms = append(terms, `"above_input_tokens":`...)
				terms = strconv.AppendInt(terms, int64(number(threshold)), 10)
			}
			if service != "" {
				if threshold != "" {
					terms = append(terms, ',')
				}
				terms = gjson.AppendJSONString(append(terms, `"service_tier":`...), service[1:])
			}
			for u := range positional {
				var part string
				part, value, _ = strings.Cut(value, "/")
				v[u] = rate(part)
			}
		}
		if array {
			b = append(b, ',')
		} else {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b, array = append(b, `"variants":[`...), true
		}
		b = append(append(b, '{'), terms...)
		b = append(v.AppendJSON(b), '}')
	}
	if array {
		b = append(b, ']')
	}
	return append(b, '}')
}

// AppendJSON appends the known rates as members of the object at the end of b.
func (r *Rates) AppendJSON(b []byte) []byte {
	for u, f := range r {
		if f < 0 {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), rateNames[u]...), `":`...)
		b = strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	return b
}
