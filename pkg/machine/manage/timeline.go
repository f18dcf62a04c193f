package manage

import (
	"cmp"
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// States of an account, a model or a provider over a time, by its attempts.
const (
	stateOperational = "operational"
	stateDegraded    = "degraded" // more than a twentieth failed
	stateDown        = "down"     // more than a half failed
)

// stateOf returns the state that attempts show, "" without any, and the share of those that
// did not fail. An attempt that was refused because of the request itself shows nothing.
func stateOf(r *usage.Row) (state string, success float64) {
	refused := r.Causes.Refused()
	attempts, failed := r.Requests-refused, r.Errors-refused
	switch {
	case attempts <= 0:
		return "", 0
	case failed*2 > attempts:
		state = stateDown
	case failed*20 > attempts:
		state = stateDegraded
	default:
		state = stateOperational
	}
	return state, float64(max(attempts-failed, 0)) / float64(attempts)
}

// maxTimelines is the number of lines of an answer: those with the most attempts.
const maxTimelines = 200

// healthSpan is the time of a line: count steps, of which the last is the current one.
type healthSpan struct {
	name  string
	step  int64 // ms
	count int64
}

var healthSpans = [...]healthSpan{{"24h", storage.Hour, 24}, {"30d", storage.Day, storage.HealthDays}}

// start returns the beginning of the first step. Steps begin at full hours and days of UTC.
func (s *healthSpan) start(now int64) int64 { return now - now%s.step - (s.count-1)*s.step }

// healthStep is what the attempts of a time have shown.
type healthStep struct {
	State    string `json:"state,omitempty"` // "" without attempts that show one
	Attempts int64  `json:"attempts"`
	Failed   int64  `json:"failed"`
	// FailedBy has Failed by usage.CauseNames.
	FailedBy map[string]int64 `json:"failedBy,omitempty"`
	// Success is the share of Attempts that did not fail, without those refused because of
	// the request itself.
	Success         float64 `json:"success"`
	LatencyP50Ms    int64   `json:"latencyP50Ms,omitempty"`
	LatencyP95Ms    int64   `json:"latencyP95Ms,omitempty"`
	FirstTokenP50Ms int64   `json:"firstTokenP50Ms,omitempty"`
	FirstTokenP95Ms int64   `json:"firstTokenP95Ms,omitempty"`
}

func stepOf(r *usage.Row) healthStep {
	v := r.View()
	state, success := stateOf(r)
	return healthStep{
		state, v.Attempts, v.FailedAttempts, v.FailedBy, success, v.LatencyP50Ms, v.LatencyP95Ms, v.FirstTokenP50Ms,
		v.FirstTokenP95Ms,
	}
}

// timedStep is a step with its beginning.
type timedStep struct {
	At int64 `json:"at"` // Unix milliseconds
	healthStep
}

// timelineView is the time line of what a group has in common. Steps without attempts are
// left out.
type timelineView struct {
	ConnectionID string `json:"connectionId,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	// Health is the present one of an account, as GET /api/providers has it.
	Health string      `json:"health,omitempty"`
	Total  healthStep  `json:"total"`
	Steps  []timedStep `json:"steps"`
}

// healthLine are the rows of a group, by the beginnings of their steps.
type healthLine struct {
	total usage.Row
	steps map[int64]*usage.Row
}

func (l *healthLine) view() timelineView {
	v := timelineView{ConnectionID: l.total.ConnectionID, Provider: l.total.Provider, Model: l.total.Model,
		Total: stepOf(&l.total), Steps: []timedStep{}}
	for at, row := range l.steps {
		v.Steps = append(v.Steps, timedStep{at, stepOf(row)})
	}
	slices.SortFunc(v.Steps, func(a, b timedStep) int { return cmp.Compare(a.At, b.At) })
	return v
}

// healthLines returns the attempts of a span in groups that have the ids of by in common:
// those with the most attempts first. Attempts that lack one of these ids, and those that
// lack one of want, are not counted.
func healthLines(t *storage.Tx, span *healthSpan, by []string, want *usage.Row) []*healthLine {
	index := map[string]*healthLine{}
	var lines []*healthLine
	for at := span.start(t.Now); at <= t.Now; at += span.step {
		each := func(r *usage.Row) {
			group, name := r.GroupedBy(by)
			lacks := slices.Contains(by, "connection") && group.ConnectionID == "" ||
				slices.Contains(by, "model") && group.Model == "" || slices.Contains(by, "provider") && group.Provider == ""
			if r.Requests == 0 || lacks || !isOf(r, want) {
				return
			}
			l := index[name]
			if l == nil {
				l = &healthLine{group, map[int64]*usage.Row{}}
				index[name] = l
				lines = append(lines, l)
			}
			l.total.Add(r)
			if l.steps[at] == nil {
				l.steps[at] = &usage.Row{}
			}
			l.steps[at].Add(r)
		}
		if span.step == storage.Day {
			t.HealthDay(at, each)
		} else {
			t.Hours(at, at, func(_ string, r *usage.Row) { each(r) })
		}
	}
	slices.SortStableFunc(lines, func(a, b *healthLine) int { return cmp.Compare(b.total.Requests, a.total.Requests) })
	return lines
}

// timelineParameters are those of GET /api/health/timeline.
var timelineParameters = [...]string{"span", "groupBy", "connection", "provider", "model"}

// timeline answers GET /api/health/timeline: what the gateway's own attempts have shown in
// the hours of the last day, span=24h, or in the last 30 days, span=30d. groupBy is
// connection, provider or model, or a list of them; without it there is one line.
//
//	200 {"object":"list","span","from","to","stepMs","steps","data":[timelineView],"leftOut"}
func (c *change) timeline() (any, error) {
	if err := rpc.OnlyParameters(c.env.Query, timelineParameters[:]); err != nil {
		return nil, err
	}
	span, by, err := timelineQuery(cmp.Or(c.query("span"), "24h"), c.query("groupBy"))
	if err != nil {
		return nil, err
	}
	want := usage.Row{ConnectionID: c.query("connection"), Provider: c.query("provider"), Model: c.query("model")}
	lines := healthLines(c.Tx, span, by, &want)
	out := struct {
		Object string         `json:"object"`
		Span   string         `json:"span"`
		From   int64          `json:"from"` // start of the first step
		To     int64          `json:"to"`   // now
		StepMs int64          `json:"stepMs"`
		Steps  int64          `json:"steps"` // of the span
		Data   []timelineView `json:"data"`
		// LeftOut is the number of lines beyond those of Data.
		LeftOut int `json:"leftOut,omitempty"`
	}{"list", span.name, span.start(c.Now), c.Now, span.step, span.count, []timelineView{}, max(len(lines)-maxTimelines, 0)}
	cools := c.Cooldowns()
	for _, l := range lines[:len(lines)-out.LeftOut] {
		v := l.view()
		var conn storage.Connection
		if rpc.IsRowID(v.ConnectionID) && c.Load(storage.ConnectionPrefix+v.ConnectionID, &conn) {
			v.Health, _ = c.Health(&conn, cools)
		}
		out.Data = append(out.Data, v)
	}
	return out, nil
}

// timelineQuery reads the span and the groups of a time line.
func timelineQuery(name, groups string) (*healthSpan, []string, error) {
	at := slices.IndexFunc(healthSpans[:], func(s healthSpan) bool { return s.name == name })
	if at < 0 {
		return nil, nil, apierr.Invalid("span", "span must be 24h or 30d.")
	}
	if groups == "" {
		return &healthSpans[at], nil, nil
	}
	by := strings.Split(groups, ",")
	for i, g := range by {
		if !slices.Contains([]string{"connection", "provider", "model"}, g) || slices.Contains(by[:i], g) {
			return nil, nil, apierr.Invalid("groupBy", "groupBy must be a list of connection, provider and model.")
		}
	}
	return &healthSpans[at], by, nil
}
