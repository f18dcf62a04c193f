package machine

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"weir/pkg/wire/apierr"
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
	u.LatencyMs += v.LatencyMs
	u.Calls += v.Calls
	u.FailedCalls += v.FailedCalls
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
			v.CacheWriteTokens < 0 || v.LatencyMs < 0 || v.Calls < 0 || v.FailedCalls < 0 || !(v.CostUSD >= 0 && v.CostUSD < 1e9) || max(len(v.Model), len(v.KeyID), len(v.ConnectionID), len(v.Provider), len(v.Endpoint)) > 400 {
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

// usageGroups are what usage can be added up by.
var usageGroups = [...]string{"day", "key", "connection", "provider", "model", "endpoint"}

// groupsOf reads "day,model".
func groupsOf(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	by := strings.Split(list, ",")
	for i, g := range by {
		if !slices.Contains(usageGroups[:], g) || slices.Contains(by[:i], g) {
			return nil, apierr.Invalid("groupBy", "groupBy must be a list of day, key, connection, provider, model and endpoint")
		}
	}
	return by, nil
}

// grouped gives the empty row that u is added to, and its name.
func (u *usageRow) grouped(by []string) (row usageRow, name string) {
	for _, g := range by {
		switch g {
		case "day":
			row.Day = u.Day
		case "key":
			row.KeyID = u.KeyID
		case "connection":
			row.ConnectionID, row.Provider = u.ConnectionID, u.Provider
		case "provider":
			row.Provider = u.Provider
		case "model":
			row.Model = u.Model
		case "endpoint":
			row.Endpoint = u.Endpoint
		}
	}
	return row, strings.Join([]string{row.Day, row.KeyID, row.ConnectionID, row.Provider, row.Model, row.Endpoint}, "\n")
}

// daysOf reads a period: day, week, month, or 30d; "" is a week.
func daysOf(period string) (int64, error) {
	switch period {
	case "day":
		return 1, nil
	case "", "week":
		return 7, nil
	case "month":
		return 30, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(period, "d"))
	if err != nil || !strings.HasSuffix(period, "d") || n < 1 || n > usageDays {
		return 0, apierr.Invalid("period", "period must be day, week, month, or a number of days: 30d")
	}
	return int64(n), nil
}

// usageView is a row of an answer. It counts clients' requests, and separately the
// attempts with providers.
type usageView struct {
	Day              string  `json:"day,omitempty"`
	KeyID            string  `json:"keyId,omitempty"`
	ConnectionID     string  `json:"connectionId,omitempty"`
	Provider         string  `json:"provider,omitempty"`
	Model            string  `json:"model,omitempty"`
	Endpoint         string  `json:"endpoint,omitempty"`
	Requests         int64   `json:"requests"`
	FailedRequests   int64   `json:"failedRequests"`
	Attempts         int64   `json:"attempts"`
	FailedAttempts   int64   `json:"failedAttempts"`
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"`
	CacheReadTokens  int64   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD          float64 `json:"costUsd,omitempty"`
	UnpricedAttempts int64   `json:"unpricedAttempts,omitempty"` // attempts without a known cost, not in CostUSD
	LatencyMs        int64   `json:"latencyMs,omitempty"`        // the sum over Requests
}

func (u *usageRow) view() usageView {
	return usageView{
		u.Day, u.KeyID, u.ConnectionID, u.Provider, u.Model, u.Endpoint, u.Calls, u.FailedCalls, u.Requests, u.Errors,
		u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostUSD, u.Unpriced, u.LatencyMs,
	}
}

// usageList answers GET /api/usage?from=&to=&groupBy=day,model: rows of the days
// asked for, the last seven unless told, and their sum. period=30d stands for
// from and to, group is another name of groupBy.
func (c *change) usageList() (any, error) {
	from, to, period := c.query("from"), c.query("to"), c.query("period")
	if period != "" && (from != "" || to != "") {
		return nil, apierr.Invalid("period", "period cannot go with from or to")
	}
	days, err := daysOf(period)
	if err != nil {
		return nil, err
	}
	if to == "" {
		to = dayOf(c.now)
	}
	if from == "" {
		from = dayOf(c.now - (days-1)*dayMs)
	}
	for name, d := range map[string]string{"from": from, "to": to} {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return nil, apierr.Invalid(name, "%s must be a day: 2026-01-31", name)
		}
	}
	groups := c.query("groupBy")
	if groups == "" {
		groups = c.query("group")
	}
	by, err := groupsOf(groups)
	if err != nil {
		return nil, err
	}
	var total usageRow
	rows := []usageRow{}
	index := map[string]int{}
	for _, u := range rowsOf[usageRow](c.tx, usagePrefix) {
		if u.Day < from || u.Day > to {
			continue
		}
		total.add(&u.Usage)
		if by == nil {
			rows = append(rows, u)
			continue
		}
		g, name := u.grouped(by)
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
		return rows[i].Model+rows[i].KeyID < rows[j].Model+rows[j].KeyID
	})
	shown := make([]usageView, len(rows))
	for i := range rows {
		shown[i] = rows[i].view()
	}
	return struct {
		Object string      `json:"object"`
		From   string      `json:"from"`
		To     string      `json:"to"`
		Data   []usageView `json:"data"`
		Total  usageView   `json:"total"`
	}{"list", from, to, shown, total.view()}, nil
}
