package search

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/words"
)

// services are the search services.
var services = []shape{{
	// POST /search {query, max_results ≤ 20, topic, time_range, include_domains[], exclude_domains[], country, include_raw_content}
	// → {answer, results[{title,url,content,published_date,score,raw_content,favicon}]}
	provider: "tavily", drop: "language",
	options: "search_depth topic days start_date end_date include_answer chunks_per_source auto_parameters include_images exact_match",
	send:    "query=query max_results=n include_favicon=:true time_range=since include_domains=include exclude_domains=exclude",
	news:    `topic=:"news"`, pages: "include_raw_content=format", formats: "markdown text",
	more: func(a *ask) {
		name := ""
		if a.kind == kindWeb { // only for general searches
			name = countryName(a.country)
		}
		if a.set("country", name); name == "" {
			a.without("country")
		}
	},
	list: "results", answer: "answer",
	hit: "title=title url=url snippet=content score=score published=published_date favicon=favicon content=raw_content",
}, {
	// POST /search {query, numResults ≤ 100, category, includeDomains[], excludeDomains[], startPublishedDate, userLocation, contents{highlights,text}}
	// → {results[{title,url,publishedDate,score,author,image,favicon,text,highlights[],summary}], costDollars{total}}
	provider: "exa", drop: "language",
	options: "type category endPublishedDate startCrawlDate endCrawlDate includeText excludeText moderation",
	send:    `query=query numResults=n type=:"auto" userLocation=country startPublishedDate=from-time includeDomains=include excludeDomains=exclude contents=:{"highlights":true}`,
	news:    `category=:"news"`, formats: "text html",
	more: func(a *ask) {
		if !a.full {
			return
		}
		text := `{"highlights":true,"text":{"includeHtmlTags":false`
		if a.content == "html" {
			text = `{"highlights":true,"text":{"includeHtmlTags":true`
		}
		if a.maxChars > 0 {
			text += `,"maxCharacters":` + itoa(a.maxChars)
		}
		a.put("contents", text+"}}")
	},
	list: "results", cost: "costDollars.total",
	hit: "title=title url=url snippet=highlights.0|summary|text score=score published=publishedDate favicon=favicon image=image author=author content=text",
}, {
	// GET /web/search and /news/search: q, count ≤ 20, offset ≤ 9 (pages), country, search_lang, freshness
	// → {web{results[{title,url,description,page_age,age,language,meta_url,profile,thumbnail}]}} and {results[…]}
	provider: "brave", own: true, get: true, drop: "content_options.full_page",
	options: "safesearch extra_snippets ui_lang units goggles_id spellcheck freshness",
	send:    "q=sites count=n offset=page0 text_decorations=:false country=country",
	more: func(a *ask) {
		a.set("search_lang", braveLanguage(a.lang(), strings.ToLower(a.language)))
		a.send("freshness=p")
	},
	list: "{kind}.results|results", none: "query",
	hit: "title=title url=url snippet=description|extra_snippets.0 published=page_age|age favicon=meta_url.favicon|profile.img image=thumbnail.original|thumbnail.src author=article.author.0.name language=language",
}, {
	// POST /search and /news {q, num, page, gl, hl, tbs}
	// → {organic|news[{title,link,snippet,date,position,imageUrl,source}], answerBox}
	provider: "serper", own: true, drop: "content_options.full_page",
	options: "location autocorrect tbs",
	send:    "q=sites num=n page=page gl=gl hl=lang tbs=qdr",
	list:    "organic|news", none: "searchParameters", answer: "answerBox.answer|answerBox.snippet",
	hit: "title=title url=link snippet=snippet published=date image=imageUrl author=source",
}, {
	// GET /search: q, format=json, categories, language, pageno, time_range day|month|year
	// → {results[{title,url,content,publishedDate,score,author,thumbnail}], answers[], number_of_results, unresponsive_engines[[name,reason]]}
	// It has no week: a month is asked for, and what is known to be older left out.
	provider: "searxng", own: true, get: true, drop: "content_options.full_page",
	options: "categories engines safesearch enabled_engines disabled_engines",
	send:    "q=sites format=:json", news: "categories=:news",
	more: searx,
	list: "results", answer: "answers.0|answers.0.answer", total: "number_of_results",
	hit: "title=title url=url snippet=content score=score published=publishedDate image=thumbnail|img_src author=author",
	read: func(f *found, raw gjson.Result, _ *ask) bool {
		words.Each(raw.Get("unresponsive_engines"), func(_, v gjson.Result) bool {
			f.problems = append(f.problems, problem{cut(v.Get("0").Str, 60), cut(v.Get("1").Str, 200)})
			return len(f.problems) < 20
		})
		return true
	},
}, {
	// POST /v1/search {q, depth, outputType, maxResults, includeDomains[], excludeDomains[], fromDate, toDate}
	// → {results[{type,name,url,content,favicon}]}
	provider: "linkup", drop: "country language",
	options: "depth includeImages toDate",
	send:    `q=query depth=:"standard" outputType=:"searchResults" maxResults=n includeDomains=include excludeDomains=exclude fromDate=from toDate=today`,
	list:    "results", only: "text", formats: "text",
	hit: "title=name url=url snippet=content favicon=favicon content=content",
}, {
	// GET /v1/search: query, count ≤ 100, offset 0–9 (pages), freshness, country, language, include_domains, exclude_domains, livecrawl, livecrawl_formats
	// → {results{web[{title,url,description,snippets[],page_age,thumbnail_url,favicon_url,authors[],contents{markdown,html}}], news[]}}
	provider: "you", own: true, get: true,
	options: "safesearch freshness",
	send:    "query=query count=n offset=page0 freshness=since country=country language=LANGUAGE include_domains=include, exclude_domains=exclude,",
	pages:   "livecrawl=kind livecrawl_formats=format", formats: "markdown html",
	list: "results.{kind}", none: "results",
	hit: "title=title url=url snippet=snippets.0|description published=page_age favicon=favicon_url image=thumbnail_url author=authors.0 content=contents.{format}",
}, {
	// POST /search {query, max_results ≤ 20, country, search_domain_filter[], search_recency_filter, search_language_filter[]}
	// → {id, results[{title,url,snippet,date,last_updated}]}
	provider: "perplexity", drop: "content_options.full_page",
	options: "max_tokens_per_page search_mode search_after_date_filter search_before_date_filter",
	send:    "query=query max_results=n country=country",
	more: func(a *ask) {
		a.perplexed()
		if a.language != "" {
			a.put("search_language_filter", words.List([]string{a.lang()}))
		}
	},
	list: "results", hit: perplexedHit,
}, {
	// POST /v2/search {query, limit ≤ 100, sources[], tbs, country, timeout, scrapeOptions}
	// → {success, data{web[{title,url,description,position,markdown}], news[{…,snippet,date,imageUrl}]}}; data[] in the first version
	provider: "firecrawl", drop: "language",
	options: "location categories ignoreInvalidURLs tbs",
	send:    "query=sites limit=n timeout=:9000 country=country tbs=qdr", formats: "markdown html",
	more: func(a *ask) {
		a.put("sources", words.List([]string{a.kind}))
		if a.full {
			a.put("scrapeOptions", `{"formats":["`+a.content+`"],"onlyMainContent":true}`)
		}
	},
	list: "data.{kind}|data", none: "data",
	hit: "title=title|metadata.title url=url|metadata.sourceURL snippet=description|snippet|metadata.description published=date image=imageUrl language=metadata.language content={format}",
}, {
	// POST s.jina.ai {q, num, gl, hl, page}, headers X-Site and X-Respond-With
	// → {code, status, data[{title,url,description,content,date,favicon}]}
	provider: "jina-reader", own: true, drop: "time_range",
	options: "location",
	send:    "q=sites num=n page=page gl=gl hl=lang", formats: "markdown text html",
	more: func(a *ask) {
		if len(a.include) == 1 && len(a.exclude) == 0 {
			a.set("q", a.query)
			a.header.Add("x-site", "https://"+a.include[0])
		}
		how := httpmsg.Field{Name: "x-respond-with", Value: "no-content"}
		if a.full {
			how = httpmsg.Field{Name: "x-return-format", Value: a.content}
		}
		a.header = append(a.header, how)
	},
	list: "data",
	hit:  "title=title url=url snippet=description|content published=date|publishedTime favicon=favicon content=content|text|html",
}, {
	// POST /web_search {search_engine, search_query, count ≤ 50, search_domain_filter, search_recency_filter, content_size}
	// → {search_result[{title,link,content,media,icon,publish_date}]}
	provider: "zai", drop: "country language",
	options: "search_engine search_intent content_size",
	send:    `search_engine=:"search-prime" search_query=sites count=n`, pages: `content_size=:"high"`, formats: "text",
	more: func(a *ask) {
		if len(a.include) == 1 && len(a.exclude) == 0 {
			a.set("search_query", a.query)
			a.set("search_domain_filter", a.include[0])
		}
		if a.since != anyTime { // "oneDay"
			a.set("search_recency_filter", "one"+strings.ToUpper(a.since[:1])+a.since[1:])
		}
	},
	list: "search_result",
	hit:  "title=title url=link snippet=content published=publish_date favicon=icon author=media content=content",
}, {
	// POST /api/web_search {query, max_results ≤ 10} → {results[{title,url,content}]}
	provider: "ollama-cloud", drop: "country language time_range",
	send: "query=sites max_results=n", formats: "text",
	list: "results", hit: "title=title url=url snippet=content content=content",
}}

// searxPage is about how many results a page of SearXNG has.
const searxPage = 20

func searx(a *ask) {
	if l := a.language; l == "" {
		a.without("country")
	} else {
		if l == a.lang() && a.country != "" {
			l += "-" + a.country
		}
		a.set("language", l)
	}
	a.skip = a.offset % searxPage
	if page := a.offset / searxPage; page > 0 {
		a.set("pageno", itoa(page+1))
	}
	switch a.since {
	case "week":
		a.set("time_range", "month")
	case anyTime:
	default:
		a.set("time_range", a.since)
	}
}

// braveLanguage gives Brave's code of a language; tag is the whole one.
func braveLanguage(lang, tag string) string {
	switch {
	case lang == "ja":
		return "jp"
	case lang == "zh":
		if strings.HasPrefix(tag, "zh-hant") || tag == "zh-tw" || tag == "zh-hk" {
			return "zh-hant"
		}
		return "zh-hans"
	case lang == "pt" && tag != "pt-pt":
		return "pt-br"
	case tag == "pt-pt", tag == "en-gb":
		return tag
	}
	return lang
}

// perplexed sets the filters that Perplexity's search and chat share. The
// domain filter is either of wanted or of unwanted domains.
func (a *ask) perplexed() {
	a.send("search_recency_filter=since search_domain_filter=include")
	if len(a.include) == 0 && len(a.exclude) > 0 {
		a.put("search_domain_filter", `["-`+strings.Join(a.exclude, `","-`)+`"]`) // domains need no quoting
	}
}

const perplexedHit = "title=title url=url snippet=snippet published=date|last_updated"

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
