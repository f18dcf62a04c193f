package api

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"weir/pkg/machine/storage"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// usageList answers GET /api/usage?from=&to=&groupBy=day,model: rows of the days
// asked for, the last seven unless told, and their sum. period=30d stands for
// from and to, group is another name of groupBy.
func (c *change) usageList() (any, error) {
	from, to, period := c.query("from"), c.query("to"), c.query("period")
	if period != "" && (from != "" || to != "") {
		return nil, apierr.Invalid("period", "period cannot go with from or to.")
	}
	days, err := daysOf(period)
	if err != nil {
		return nil, err
	}
	if to == "" {
		to = storage.DayOf(c.Now)
	}
	if from == "" {
		from = storage.DayOf(c.Now - (days-1)*storage.Day)
	}
	for name, d := range map[string]string{"from": from, "to": to} {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return nil, apierr.Invalid(name, "%s must be a day: 2026-01-31.", name)
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
	var total storage.UsageRow
	rows := []storage.UsageRow{}
	index := map[string]int{}
	for _, u := range storage.RowsOf[storage.UsageRow](c.Tx, storage.UsagePrefix) {
		if u.Day < from || u.Day > to {
			continue
		}
		total.Add(&u.Row)
		if by == nil {
			rows = append(rows, u)
			continue
		}
		var g storage.UsageRow
		var name string
		if g.Row, name = u.GroupedBy(by); slices.Contains(by, "day") {
			g.Day = u.Day
		}
		name = g.Day + "\n" + name
		at, ok := index[name]
		if !ok {
			at = len(rows)
			index[name] = at
			rows = append(rows, g)
		}
		rows[at].Add(&u.Row)
	}
	sort.SliceStable(rows, func(i, j int) bool {
		if rows[i].Day != rows[j].Day {
			return rows[i].Day < rows[j].Day
		}
		return rows[i].Model+rows[i].KeyID < rows[j].Model+rows[j].KeyID
	})
	shown := make([]usage.View, len(rows))
	for i := range rows {
		shown[i] = rows[i].View(rows[i].Day)
	}
	return struct {
		Object string       `json:"object"`
		From   string       `json:"from"`
		To     string       `json:"to"`
		Data   []usage.View `json:"data"`
		Total  usage.View   `json:"total"`
	}{"list", from, to, shown, total.View("")}, nil
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
			return nil, apierr.Invalid("groupBy", "groupBy must be a list of day, key, connection, provider, model and endpoint.")
		}
	}
	return by, nil
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
	if err != nil || !strings.HasSuffix(period, "d") || n < 1 || n > storage.UsageDays {
		return 0, apierr.Invalid("period", "period must be day, week, month, or a number of days: 30d.")
	}
	return int64(n), nil
}
