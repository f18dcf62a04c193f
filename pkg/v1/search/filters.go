package search

import (
	"strings"
	"time"
)

// page returns the page of the offset, from 0 on, for pages of c.want results. The
// results of that page before the offset are left out of the answer.
func (c *call) page() int {
	c.skip = c.offset % c.want
	return c.offset / c.want
}

// setPage sets a parameter to the page of the offset, from 1 on. The first page is
// left out.
func (c *call) setPage(name string) {
	if n := c.page(); n > 0 {
		c.setInt(name, n+1)
	}
}

// setPageIndex sets a parameter to the page of the offset, from 0 on and at most 9.
// The first page is left out.
func (c *call) setPageIndex(name string) {
	switch n := c.page(); {
	case n > 9:
		c.dropped = append(c.dropped, "offset")
		c.setInt(name, 9)
	case n > 0:
		c.setInt(name, n)
	}
}

// siteQuery returns the query with the domain filter as search operators.
func (c *call) siteQuery() string { return c.query + c.siteOperators() }

// siteOperators returns the domain filter as search operators, after a blank.
func (c *call) siteOperators() string {
	s := ""
	switch len(c.include) {
	case 0:
	case 1:
		s = " site:" + c.include[0]
	default:
		s = " (site:" + strings.Join(c.include, " OR site:") + ")"
	}
	for _, d := range c.exclude {
		s += " -site:" + d
	}
	return s
}

// timeRange returns day, week, month or year, or "" for any time.
func (c *call) timeRange() string {
	if c.since == anyTime {
		return ""
	}
	return c.since
}

// timeRangeLetter returns prefix and the first letter of the time range, as Google
// (qdr:d) and Brave (pd) write it, or "" for any time.
func (c *call) timeRangeLetter(prefix string) string {
	if c.since == anyTime {
		return ""
	}
	return prefix + c.since[:1]
}

// fromFormat returns the begin of the time range in a layout of package time, or ""
// for any time.
func (c *call) fromFormat(layout string) string {
	if c.since == anyTime {
		return ""
	}
	return c.from().Format(layout)
}

// from returns the begin of the time range; the zero time for any time.
func (c *call) from() time.Time {
	months, days := 0, 0
	switch c.since {
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
	return c.now.UTC().AddDate(0, -months, -days)
}
