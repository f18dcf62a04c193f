package manage

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/usage"
)

// maxPublic is the number of models or providers on the public status page.
const maxPublic = 100

// stateUnknown is the public state of what was not called lately.
const stateUnknown = "unknown"

// PublicStatus answers the operation "status". A model that no account has ever answered is
// left out: a caller may have made up its name.
func (o *Manager) PublicStatus(r *storage.Call) (any, error) {
	by := map[string]string{store.StatusOfProviders: "provider", store.StatusOfModels: "model"}[r.Settings().PublicStatus]
	if !r.Exists() || by == "" {
		return nil, rpc.ErrNoStatus()
	}
	days, hours := publicLines(r.Tx, &healthSpans[1], by), publicLines(r.Tx, &healthSpans[0], by)
	out := rpc.PublicStatus{Object: "status", By: by, State: stateUnknown, UpdatedAt: r.Now, Data: []rpc.PublicState{}}
	for _, name := range mostUsed(days, by) {
		line := days[name]
		s := rpc.PublicState{Name: name}
		s.Days, s.Success30d = line.public(&healthSpans[1], r.Now)
		lately := usage.Row{}
		if line = hours[name]; line == nil {
			line = &healthLine{}
		}
		s.Hours, s.Success24h = line.public(&healthSpans[0], r.Now)
		for at := r.Now - r.Now%storage.Hour - storage.Hour; at <= r.Now; at += storage.Hour {
			if row := line.steps[at]; row != nil {
				lately.Add(row)
			}
		}
		state, _ := stateOf(&lately)
		s.State = cmp.Or(state, stateUnknown)
		out.Data = append(out.Data, s)
	}
	slices.SortFunc(out.Data, func(a, b rpc.PublicState) int { return strings.Compare(a.Name, b.Name) })
	out.State = overall(out.Data)
	return out, nil
}

// mostUsed returns the names of the lines with the most attempts, up to maxPublic: of models
// those that an account has answered.
func mostUsed(lines map[string]*healthLine, by string) (names []string) {
	for name, l := range lines {
		if by == "provider" || l.total.Errors < l.total.Requests {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(lines[b].total.Requests, lines[a].total.Requests), strings.Compare(a, b))
	})
	return names[:min(len(names), maxPublic)]
}

// overall returns the state of all: down if all that were called lately are.
func overall(list []rpc.PublicState) string {
	n := map[string]int{}
	for i := range list {
		n[list[i].State]++
	}
	switch known := len(list) - n[stateUnknown]; {
	case known == 0:
		return stateUnknown
	case n[stateDown] == known:
		return stateDown
	case n[stateOperational] == known:
		return stateOperational
	}
	return stateDegraded
}

// publicLines returns the lines of a span by the names that are shown. Servers of the owner
// are one provider: their ids are the owner's.
func publicLines(t *storage.Tx, span *healthSpan, by string) map[string]*healthLine {
	lines := map[string]*healthLine{}
	for _, l := range healthLines(t, span, []string{by}, &usage.Row{}) {
		name := l.total.Model
		if by == "provider" {
			p := provider.Lookup(l.total.Provider)
			if p == nil {
				continue
			}
			if name = p.Name; p.Compatible {
				name = "Compatible server"
			}
		}
		had := lines[name]
		if had == nil {
			lines[name] = l
			continue
		}
		had.total.Add(&l.total)
		for at, row := range l.steps {
			if had.steps[at] == nil {
				had.steps[at] = &usage.Row{}
			}
			had.steps[at].Add(row)
		}
	}
	return lines
}

// public returns the states of the steps of a line, and the share of its attempts that
// succeeded, rounded to a thousandth.
func (l *healthLine) public(span *healthSpan, now int64) (states []string, success *float64) {
	for i := range span.count {
		state := ""
		if row := l.steps[span.start(now)+i*span.step]; row != nil {
			state, _ = stateOf(row)
		}
		states = append(states, state)
	}
	if state, share := stateOf(&l.total); state != "" {
		share = math.Floor(share*1000) / 1000
		success = &share
	}
	return states, success
}
