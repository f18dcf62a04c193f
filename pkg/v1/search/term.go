package search

import (
	"strconv"
	"strings"
	"time"

	"weir/pkg/words"
)

// send sets the fields of a list, "name=term".
func (a *ask) send(list string) {
	for list != "" {
		var f string
		f, list, _ = strings.Cut(list, " ")
		name, term, _ := strings.Cut(f, "=")
		if strings.HasPrefix(term, ":") {
			a.put(name, term[1:])
			continue
		}
		value, json := a.term(term)
		a.field(name, value, json)
	}
}

// term gives what a word stands for, as a text or in JSON; "" when the client
// does not ask for it.
func (a *ask) term(word string) (value string, json bool) {
	switch word {
	case "query":
		return a.query, false
	case "sites":
		return a.sites(), false
	case "n":
		return itoa(a.want), true
	case "page": // from 1 on; the first one is not named
		if n := a.page(); n > 0 {
			return itoa(n + 1), true
		}
	case "page0": // from 0 on, up to 9
		switch n := a.page(); {
		case n > 9:
			a.dropped = append(a.dropped, "offset")
			return "9", true
		case n > 0:
			return itoa(n), true
		}
	case "kind":
		return a.kind, false
	case "format":
		return a.content, false
	case "country":
		return a.country, false
	case "model":
		return a.model, false
	case "prompt":
		return a.prompt(), false
	case "messages":
		return `[{"role":"user","content":` + words.Quote(a.prompt()) + `}]`, true
	case "messages-sites":
		return `[{"role":"user","content":` + words.Quote(a.prompt()+a.operators()) + `}]`, true
	case "contents":
		return `[{"role":"user","parts":[{"text":` + words.Quote(a.prompt()+a.operators()) + `}]}]`, true
	case "gl":
		return strings.ToLower(a.country), false
	case "lang":
		return a.lang(), false
	case "LANGUAGE":
		return strings.ToUpper(a.language), false
	case "include":
		return words.List(a.include), true
	case "exclude":
		return words.List(a.exclude), true
	case "include,":
		return strings.Join(a.include, ","), false
	case "exclude,":
		return strings.Join(a.exclude, ","), false
	}
	if a.since == anyTime {
		return "", false
	}
	switch word {
	case "since":
		return a.since, false
	case "from":
		return a.from().Format(time.DateOnly), false
	case "from-time":
		return a.from().Format("2006-01-02T15:04:05.000Z"), false
	case "today":
		return a.now.UTC().Format(time.DateOnly), false
	case "qdr": // in Google's words
		return "qdr:" + a.since[:1], false
	case "p": // in Brave's
		return "p" + a.since[:1], false
	}
	return "", false
}

// page turns the offset into a page of as many results as are asked for; the
// results of the page before the offset are left out.
func (a *ask) page() int {
	a.skip = a.offset % a.want
	return a.offset / a.want
}

// sites gives the query with the domain filter as operators of the query.
func (a *ask) sites() string { return a.query + a.operators() }

// operators gives the domain filter as operators of a query.
func (a *ask) operators() string {
	s := ""
	switch len(a.include) {
	case 0:
	case 1:
		s = " site:" + a.include[0]
	default:
		s = " (site:" + strings.Join(a.include, " OR site:") + ")"
	}
	for _, d := range a.exclude {
		s += " -site:" + d
	}
	return s
}

// from gives the begin of the time range; the zero time for any time.
func (a *ask) from() time.Time {
	months, days := 0, 0
	switch a.since {
	case "day":
		days = 1
	case "week":
		days = 7
	case "month":
		months = 1
	case "year":
		months = 12
	default:
		return time.Time{}
	}
	return a.now.UTC().AddDate(0, -months, -days)
}

func itoa(n int) string { return strconv.Itoa(n) }
