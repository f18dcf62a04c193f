package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonvalue"
)

// POST /search {query, max_results ≤ 20, topic, time_range, include_domains[], exclude_domains[],
// country, include_raw_content}
// → {answer, results[{title,url,content,published_date,score,raw_content,favicon}]}
var tavily = service{
	providers: []string{"tavily"}, ignores: fieldLanguage, formats: []string{"markdown", "text"},
	options: []string{"search_depth", "topic", "days", "start_date", "end_date", "include_answer", "chunks_per_source",
		"auto_parameters", "include_images", "exact_match"},
	build: func(c *call) {
		c.set("query", c.query)
		c.setInt("max_results", c.want)
		c.setJSON("include_favicon", "true")
		c.set("time_range", c.timeRange())
		c.setList("include_domains", c.include)
		c.setList("exclude_domains", c.exclude)
		country := ""
		if c.kind == kindNews {
			c.set("topic", "news")
		} else { // a country is for general searches only
			country = countryName(c.country)
		}
		if c.full {
			c.set("include_raw_content", c.content)
		}
		if c.set("country", country); country == "" {
			c.drop(fieldCountry)
		}
	},
	read: func(_ *call, r *response, answer gjson.Result) bool {
		r.answer = jsonvalue.Text(answer, "answer")
		return r.readFirst(answer, func(v gjson.Result) result {
			return result{
				title: jsonvalue.Text(v, "title"), url: jsonvalue.Text(v, "url"), snippet: jsonvalue.Text(v, "content"),
				score: jsonvalue.Number(v, "score"), published: jsonvalue.Text(v, "published_date"),
				favicon: jsonvalue.Text(v, "favicon"), content: jsonvalue.Text(v, "raw_content"),
			}
		}, "results")
	},
}

// countries are the codes and names of the countries whose results Tavily can
// prefer (https://docs.tavily.com/documentation/api-reference/endpoint/search, country).
const countries = "AE united arab emirates,AR argentina,AT austria,AU australia,BD bangladesh,BE belgium,BG bulgaria,BR brazil,CA canada," +
	"CH switzerland,CL chile,CN china,CO colombia,CZ czech republic,DE germany,DK denmark,EE estonia,EG egypt,ES spain,FI finland,FR france," +
	"GB united kingdom,GR greece,HR croatia,HU hungary,ID indonesia,IE ireland,IL israel,IN india,IS iceland,IT italy,JP japan,KE kenya," +
	"KR south korea,LT lithuania,LU luxembourg,LV latvia,MA morocco,MX mexico,MY malaysia,NG nigeria,NL netherlands,NO norway,NZ new zealand," +
	"PE peru,PH philippines,PK pakistan,PL poland,PT portugal,RO romania,RS serbia,RU russia,SA saudi arabia,SE sweden,SG singapore,SI slovenia," +
	"SK slovakia,TH thailand,TR turkey,TW taiwan,UA ukraine,US united states,UY uruguay,VN vietnam,ZA south africa,"

// countryName returns Tavily's name of a country, or "".
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
