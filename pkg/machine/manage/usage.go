package manage

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// usageList answers GET /api/usage?from=&to=&groupBy=day,model: rows of the days
// asked for, by default the last seven, and their sum. period=30d stands for
// from and to, group is another name of groupBy. With groupBy=hour the rows are
// those of hours, period=24h or "2026-01-31T19", with groupBy=month those of months, by
// default all that are stored. key, connection, provider, model and
// endpoint are filters. For tools and tags see label.
func (c *change) usageList() (any, error) { return c.usageOf("") }

// usageParameters are the names of the parameters of GET /api/usage.
var usageParameters = [...]string{"from", "to", "period", "groupBy", "group", "key", "connection", "provider", "model",
	"endpoint", "tool", "tag"}

// usageReport is the answer to GET /api/usage.
type usageReport struct {
	Object string       `json:"object"`
	From   string       `json:"from"`
	To     string       `json:"to"`
	Data   []usage.View `json:"data"`
	// Groups are the rows of Data with all their days or hours together.
	Groups []usage.View `json:"groups,omitempty"`
	Total  usage.View   `json:"total"`
	// Unpriced names models with attempts whose price was not known, those
	// with the most attempts first.
	Unpriced []unpricedModel `json:"unpriced,omitempty"`
	// TagNames are the names of the tags of the last days, for groupBy.
	TagNames []string `json:"tagNames,omitempty"`
	Scan     int64    `json:"scan,omitempty"` // of a CSV file, see usageSpan.part
}

type unpricedModel struct {
	Model    string `json:"model"`
	Provider string `json:"provider,omitempty"`
	Attempts int64  `json:"attempts"`
	// Priced reports that other attempts of the model have a cost: these came before
	// its price was known, or used something that has none.
	Priced bool `json:"priced,omitempty"`
}

// maxUnpriced is the number of models in Unpriced.
const maxUnpriced = 20

// usageOf returns the usage that the query asks for, of one key unless keyID is "".
func (c *change) usageOf(keyID string) (*usageReport, error) {
	if err := rpc.OnlyParameters(c.env.Query, usageParameters[:]); err != nil {
		return nil, err
	}
	groups := c.query("groupBy")
	if groups == "" {
		groups = c.query("group")
	}
	by, err := groupsOf(groups)
	if err != nil {
		return nil, err
	}
	label, err := c.labelOf(by)
	if err != nil {
		return nil, err
	}
	span, err := c.spanOf(by)
	if err != nil {
		return nil, err
	}
	want := usage.Row{
		KeyID: c.query("key"), ConnectionID: c.query("connection"), Provider: c.query("provider"), Model: c.query("model"),
		Endpoint: c.query("endpoint"),
	}
	if keyID != "" {
		want.KeyID = keyID
	}
	var total usage.Row
	unpriced := map[[2]string]int64{} // attempts by model and provider
	priced := map[[2]string]bool{}
	timed := by == nil || span.unit != ""
	next := span.part(&c.env, timed)
	rows, whole := groupedUsage{label: label}, groupedUsage{label: label}
	add := func(when, value string, r *usage.Row) {
		total.Add(r)
		if r.Unpriced > 0 {
			unpriced[[2]string{r.Model, r.Provider}] += r.Unpriced
		}
		if r.CostUSD > 0 {
			priced[[2]string{r.Model, r.Provider}] = true
		}
		group, name := r.Kind(), ""
		if by != nil {
			group, name = r.GroupedBy(by)
		} else {
			_, name = r.GroupedBy(usageGroups[:])
		}
		if !timed {
			when = ""
		} else if len(by) > 1 {
			whole.add("", name, value, group, r)
		}
		if span.unit == "month" {
			when = when[:len("2026-11")]
		}
		rows.add(when, name, value, group, r)
	}
	wanted := func(when string, r *usage.Row) {
		if c.isOf(r, &want) {
			add(when, "", r)
		}
	}
	switch {
	case label != nil:
		c.labelled(span.start, span.end, label, &want, add)
		clear(unpriced) // of models
	case span.unit == "hour":
		c.Hours(span.start, span.end, wanted)
	default:
		c.days(span.start, span.end, wanted)
	}
	return &usageReport{"list", span.from, span.to, rows.views(span.unit), whole.views(""), total.View(),
		unpricedModels(unpriced, priced), c.tagNames(span.start, min(span.end, c.Now)), next}, nil
}

// days calls each with the rows of usage of the days from one time to another.
func (c *change) days(from, to int64, each func(day string, r *usage.Row)) {
	first := max(from, c.Now-storage.UsageDays*storage.Day)
	for at := first - first%storage.Day; at <= min(to, c.Now); at += storage.Day {
		for _, u := range storage.RowsOf[storage.UsageRow](c.Tx, storage.UsagePrefix+storage.DayOf(at)) {
			each(u.Day, &u.Row)
		}
	}
}

// isOf reports whether a row has the ids that are set in want.
func isOf(r, want *usage.Row) bool {
	for _, f := range [...][2]string{
		{want.KeyID, r.KeyID}, {want.ConnectionID, r.ConnectionID}, {want.Provider, r.Provider}, {want.Model, r.Model},
		{want.Endpoint, r.Endpoint},
	} {
		if f[0] != "" && f[0] != f[1] {
			return false
		}
	}
	return true
}

func unpricedModels(attempts map[[2]string]int64, priced map[[2]string]bool) (list []unpricedModel) {
	for name, n := range attempts {
		list = append(list, unpricedModel{name[0], name[1], n, priced[name]})
	}
	slices.SortFunc(list, func(a, b unpricedModel) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
	})
	return list[:min(len(list), maxUnpriced)]
}

// groupedUsage has rows of usage by the time and the name of their group.
type groupedUsage struct {
	label *usageLabel // nil for none
	rows  []timedUsage
	index map[string]int
}

// timedUsage is the usage of a month, a day or an hour, by a value of the label.
type timedUsage struct {
	when, value string
	usage.Row
}

func (g *groupedUsage) add(when, name, value string, group usage.Row, r *usage.Row) {
	name = when + "\n" + value + "\n" + name
	at, ok := g.index[name]
	if !ok {
		if g.index == nil {
			g.index = map[string]int{}
		}
		at = len(g.rows)
		g.index[name] = at
		g.rows = append(g.rows, timedUsage{when, value, group})
	}
	g.rows[at].Add(r)
}

// views returns the rows as they are shown, in the order of time.
func (g *groupedUsage) views(unit string) []usage.View {
	sort.SliceStable(g.rows, func(i, j int) bool {
		a, b := &g.rows[i], &g.rows[j]
		if a.when != b.when {
			return a.when < b.when
		}
		return a.Model+a.KeyID+a.value < b.Model+b.KeyID+b.value
	})
	shown := make([]usage.View, len(g.rows))
	for i := range g.rows {
		v := g.rows[i].View()
		if g.label != nil {
			g.label.show(&v, g.rows[i].value)
		}
		switch when := g.rows[i].when; unit {
		case "hour":
			v.Hour = when
		case "month":
			v.Month = when
		default:
			v.Day = when
		}
		shown[i] = v
	}
	return shown
}

// usageSpan is the time of a report, in days or in hours, the last one included.
type usageSpan struct {
	unit       string // of the rows: "hour", "day", "month", or "" for days without groups
	from, to   string
	start, end int64 // Unix milliseconds
}

// spanOf reads from, to and period. by are the groups that were asked for.
func (c *change) spanOf(by []string) (s usageSpan, err error) {
	for _, unit := range usageUnits {
		if slices.Contains(by, unit) {
			s.unit = unit
		}
	}
	hours := s.unit == "hour"
	from, to, period := c.query("from"), c.query("to"), c.query("period")
	if period != "" && (from != "" || to != "") {
		return s, apierr.Invalid("period", "period cannot go with from or to.")
	}
	count, unit, form := int64(24), storage.Hour, "2006-01-02T15"
	if hours {
		count, err = hoursOf(period)
	} else {
		unit, form = storage.Day, time.DateOnly
		if count, err = daysOf(period); s.unit == "month" && period == "" {
			count = storage.UsageDays
		}
	}
	if err != nil {
		return s, err
	}
	s.start, s.end = c.Now-(count-1)*unit, c.Now
	for _, p := range [...]struct {
		name, text string
		at         *int64
	}{{"from", from, &s.start}, {"to", to, &s.end}} {
		if p.text == "" {
			continue
		}
		at, err := time.Parse(form, p.text)
		if err != nil && hours {
			return s, apierr.Invalid(p.name, "%s must be an hour with groupBy=hour: 2026-01-31T19.", p.name)
		}
		if err != nil {
			return s, apierr.Invalid(p.name, "%s must be a day: 2026-01-31.", p.name)
		}
		*p.at = at.UnixMilli()
	}
	if hours { // of which there are rows
		s.start, s.end = max(s.start, c.Now-storage.UsageHours*storage.Hour), min(s.end, c.Now)
	}
	s.from, s.to = time.UnixMilli(s.start).UTC().Format(form), time.UnixMilli(s.end).UTC().Format(form)
	return s, nil
}

// usageGroups are what usage can be added up by.
var usageGroups = [...]string{"month", "day", "hour", "key", "connection", "provider", "model", "endpoint"}

// usageUnits are those of usageGroups that are a time.
var usageUnits = usageGroups[:3]

// groupsOf reads "day,model".
func groupsOf(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	by := strings.Split(list, ",")
	for i, g := range by {
		if !slices.Contains(usageGroups[:], g) && !isLabel(g) || slices.Contains(by[:i], g) {
			return nil, apierr.Invalid("groupBy", "groupBy must be a list of month, day or hour, key, connection, provider, model, endpoint, tool and tag:NAME.")
		}
	}
	times := 0
	for _, g := range by {
		if slices.Contains(usageUnits, g) {
			times++
		}
	}
	if times > 1 {
		return nil, apierr.Invalid("groupBy", "groupBy can have one of month, day and hour.")
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

// hoursOf reads a period in hours: 24h; "" is a day.
func hoursOf(period string) (int64, error) {
	if period == "" || period == "day" {
		return 24, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(period, "h"))
	if err != nil || !strings.HasSuffix(period, "h") || n < 1 || n > storage.UsageHours {
		return 0, apierr.Invalid("period", "period must be a number of hours with groupBy=hour, up to %dh: 24h.",
			storage.UsageHours)
	}
	return int64(n), nil
}

// usageWeek is the time of the rows that a call of the object returns for a CSV file.
const usageWeek = int64(7 * 24 * time.Hour / time.Millisecond)

// part limits a span to the week of it that a call for a CSV file asks for, and returns
// where the next begins, 0 at the end. Rows of months, and those without a time, are sums
// of the whole span.
func (s *usageSpan) part(env *rpc.ManageCall, timed bool) (next int64) {
	if env.Scan == 0 || !timed || s.unit == "month" {
		return 0
	}
	s.start = max(s.start, env.Scan)
	if next = s.start - s.start%usageWeek + usageWeek; next > s.end {
		return 0
	}
	s.end = next - 1
	return next
}
