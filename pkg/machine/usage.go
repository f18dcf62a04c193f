package machine

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

const (
	usageDays    = 90
	maxUsageRows = 5000 // of one day; what comes after is added up without its model
)

// usageRow is a day's use by one key, of one account and model.
type usageRow struct {
	Day string `json:"day"` // 2026-11-21, UTC
	usage.Row
}

func dayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// use adds to the rows of today.
func (t *tx) use(list []usage.Row) {
	day := dayOf(t.now)
	countKey := "usages:" + day
	var rows int
	t.load(countKey, &rows)
	was := rows
	for i := range list {
		v := &list[i]
		if !v.Valid() {
			continue
		}
		name := usagePrefix + day + ":" + digestOf(v.KeyID, v.ConnectionID, v.Model, v.Endpoint)
		row := usageRow{Day: day}
		if !t.load(name, &row) {
			if rows >= maxUsageRows {
				name = usagePrefix + day + ":" + digestOf("", "", "", "")
				if !t.load(name, &row) {
					row.Row = usage.Row{}
				}
			} else {
				rows++
				row.Row = v.Kind()
			}
		}
		row.Add(v)
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
		total.Add(&u.Row)
		if by == nil {
			rows = append(rows, u)
			continue
		}
		var g usageRow
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
