package machine

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"weir/pkg/apierr"
)

const (
	usageDays    = 90
	maxUsageRows = 5000 // of one day; what comes after is added up without its model
)

// usageRow is a day's use by one key, of one account and model.
type usageRow struct {
	Day string `json:"day"` // 2026-11-21, UTC
	Usage
}

func (u *usageRow) add(v *Usage) {
	u.Requests += v.Requests
	u.Errors += v.Errors
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.CostUSD += v.CostUSD
	u.ReasoningTokens += v.ReasoningTokens
	u.Unpriced += v.Unpriced
}

func dayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// use adds to the rows of today.
func (t *tx) use(list []Usage) {
	day := dayOf(t.now)
	countKey := "usages:" + day
	var rows int
	t.load(countKey, &rows)
	was := rows
	for i := range list {
		v := &list[i]
		if v.Requests < 0 || v.Errors < 0 || v.InputTokens < 0 || v.OutputTokens < 0 || v.ReasoningTokens < 0 || v.Unpriced < 0 || v.CacheReadTokens < 0 ||
			v.CacheWriteTokens < 0 || !(v.CostUSD >= 0 && v.CostUSD < 1e9) || max(len(v.Model), len(v.KeyID), len(v.ConnectionID), len(v.Provider), len(v.Endpoint)) > 400 {
			continue
		}
		name := usagePrefix + day + ":" + digestOf(v.KeyID, v.ConnectionID, v.Model, v.Endpoint)
		row := usageRow{Day: day}
		if !t.load(name, &row) {
			if rows >= maxUsageRows {
				name = usagePrefix + day + ":" + digestOf("", "", "", "")
				if !t.load(name, &row) {
					row.Usage = Usage{}
				}
			} else {
				rows++
				row.Usage = Usage{KeyID: v.KeyID, ConnectionID: v.ConnectionID, Provider: v.Provider, Model: v.Model, Endpoint: v.Endpoint}
			}
		}
		row.add(v)
		t.put(name, row)
	}
	if rows != was {
		t.put(countKey, rows)
	}
}

// usageGroups are the ways to add up usage.
var usageGroups = map[string]func(u *usageRow) usageRow{
	"day": func(u *usageRow) usageRow { return usageRow{Day: u.Day} },
	"key": func(u *usageRow) usageRow { return usageRow{Usage: Usage{KeyID: u.KeyID}} },
	"connection": func(u *usageRow) usageRow {
		return usageRow{Usage: Usage{ConnectionID: u.ConnectionID, Provider: u.Provider}}
	},
	"provider": func(u *usageRow) usageRow { return usageRow{Usage: Usage{Provider: u.Provider}} },
	"model":    func(u *usageRow) usageRow { return usageRow{Usage: Usage{Model: u.Model}} },
	"endpoint": func(u *usageRow) usageRow { return usageRow{Usage: Usage{Endpoint: u.Endpoint}} },
}

// usageList answers GET /api/usage?from=&to=&groupBy=: rows of the days asked
// for, the last seven unless told, and their sum.
func (c *change) usageList() (any, error) {
	from, to := c.query("from"), c.query("to")
	if to == "" {
		to = dayOf(c.now)
	}
	if from == "" {
		from = dayOf(c.now - 6*dayMs)
	}
	for name, d := range map[string]string{"from": from, "to": to} {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return nil, apierr.Invalid(name, "%s must be a day: 2026-01-31", name)
		}
	}
	group := usageGroups[c.query("groupBy")]
	if by := c.query("groupBy"); by != "" && group == nil {
		return nil, apierr.Invalid("groupBy", "groupBy must be day, key, connection, provider, model or endpoint")
	}
	var total usageRow
	rows := []usageRow{}
	index := map[string]int{}
	for _, u := range rowsOf[usageRow](c.tx, usagePrefix) {
		if u.Day < from || u.Day > to {
			continue
		}
		total.add(&u.Usage)
		if group == nil {
			rows = append(rows, u)
			continue
		}
		g := group(&u)
		name := fmt.Sprint(g)
		at, ok := index[name]
		if !ok {
			at = len(rows)
			index[name] = at
			rows = append(rows, g)
		}
		rows[at].add(&u.Usage)
	}
	sort.SliceStable(rows, func(i, j int) bool {
		if rows[i].Day != rows[j].Day {
			return rows[i].Day < rows[j].Day
		}
		return strings.Compare(rows[i].Model+rows[i].KeyID, rows[j].Model+rows[j].KeyID) < 0
	})
	return struct {
		Object string     `json:"object"`
		From   string     `json:"from"`
		To     string     `json:"to"`
		Data   []usageRow `json:"data"`
		Total  Usage      `json:"total"`
	}{"list", from, to, rows, total.Usage}, nil
}
