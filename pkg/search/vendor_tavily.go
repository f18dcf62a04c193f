package search

import (
	"strings"

	"github.com/tidwall/gjson"
)

// tavily is POST /search:
//
//	{query, max_results ≤ 20, topic, time_range, include_domains[], exclude_domains[], country, include_raw_content}
//	→ {answer, results[{title,url,content,published_date,score,raw_content,favicon}]}
var tavily = shape{
	providers: []string{"tavily"}, max: 20,
	options: []string{"search_depth", "topic", "days", "start_date", "end_date", "include_answer", "chunks_per_source", "auto_parameters", "include_images", "exact_match"},
	build: func(a *ask) {
		b := a.body
		b["query"], b["max_results"], b["include_favicon"] = a.query, a.want, true
		if a.kind == kindNews {
			b["topic"] = "news"
		} else if name := countryName(a.country); name != "" {
			b["country"] = name // only for general searches
		}
		if a.country != "" && b["country"] == nil {
			a.drop("country")
		}
		if a.since != anyTime {
			b["time_range"] = a.since
		}
		a.lists("include_domains", "exclude_domains")
		if a.full {
			b["include_raw_content"] = "markdown"
			if a.format == "text" {
				b["include_raw_content"] = "text"
			}
		}
		a.without("language")
	},
	read: func(f *found, raw gjson.Result, a *ask) error {
		list := raw.Get("results")
		if !list.IsArray() {
			return errShape
		}
		f.answer = raw.Get("answer").Str
		list.ForEach(func(_, v gjson.Result) bool {
			h := hit{
				title: v.Get("title").Str, url: v.Get("url").Str, snippet: v.Get("content").Str, score: number(v.Get("score")),
				published: v.Get("published_date").Str, favicon: v.Get("favicon").Str, content: v.Get("raw_content").Str, format: "markdown",
			}
			if a.format == "text" {
				h.format = "text"
			}
			f.results = append(f.results, h)
			return true
		})
		return nil
	},
}

// countries are the codes and names of the countries that Tavily prefers
// results from (docs.tavily.com, Search, country).
const countries = "AE united arab emirates,AR argentina,AT austria,AU australia,BD bangladesh,BE belgium,BG bulgaria,BR brazil,CA canada," +
	"CH switzerland,CL chile,CN china,CO colombia,CZ czech republic,DE germany,DK denmark,EE estonia,EG egypt,ES spain,FI finland,FR france," +
	"GB united kingdom,GR greece,HR croatia,HU hungary,ID indonesia,IE ireland,IL israel,IN india,IS iceland,IT italy,JP japan,KE kenya," +
	"KR south korea,LT lithuania,LU luxembourg,LV latvia,MA morocco,MX mexico,MY malaysia,NG nigeria,NL netherlands,NO norway,NZ new zealand," +
	"PE peru,PH philippines,PK pakistan,PL poland,PT portugal,RO romania,RS serbia,RU russia,SA saudi arabia,SE sweden,SG singapore,SI slovenia," +
	"SK slovakia,TH thailand,TR turkey,TW taiwan,UA ukraine,US united states,UY uruguay,VN vietnam,ZA south africa,"

// countryName gives the English name of a country in lower case, or "".
func countryName(code string) string {
	if code == "" {
		return ""
	}
	_, rest, ok := strings.Cut(","+countries, ","+code+" ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ",")
	return name
}
