package api

import (
	"context"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/metrics"
	"weir/pkg/wire/stream"
)

// Scraper answers GET /metrics.
type Scraper struct {
	Objects rpc.Stub
	Version string // of the build
	// Process returns the metrics of the process; nil where there are many.
	Process func() []metrics.Family
}

// maxScraped is the number of machines of one answer. On the edge each is a call of those that
// the platform makes for one request.
const maxScraped = 20

// Serve serves GET and HEAD /metrics?machine=&keys=&conventions=: the metrics of the machine of
// the path or of the key. Without either the operator gets those of the process and of the machines that
// are named, none with "", or of all.
func (s *Scraper) Serve(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	kind, text, err := s.Scrape(ctx, c.MachineID, c.Query, c.Header.Get("accept"))
	if err != nil {
		return nil, err
	}
	resp := &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: kind}, {Name: "vary", Value: "accept"}},
	}
	if c.Method != "HEAD" {
		resp.Body = stream.FromBytes(text)
	}
	return resp, nil
}

// Scrape returns the metrics of a machine, or with "" those that the operator gets. accept is
// the field of the request.
func (s *Scraper) Scrape(ctx context.Context, machineID, rawQuery, accept string) (contentType string, text []byte,
	err error) {
	q, err := query(rawQuery)
	if err == nil {
		err = rpc.OnlyParameters(q, []string{"machine", "keys", "conventions"})
	}
	if err != nil {
		return "", nil, err
	}
	ask := rpc.MetricsAsk{Keys: q["keys"] == "true"}
	if v, given := q["keys"]; given && v != "true" && v != "false" {
		return "", nil, apierr.Invalid("keys", "keys must be true or false.")
	}
	version, asked := q["conventions"]
	if ask.Conventions = version; asked && version != rpc.GenAI && version != rpc.GenAI141 {
		return "", nil, apierr.Invalid("conventions", "conventions must be 0.1.0 or 1.41.")
	}
	named, given := q["machine"]
	format := metrics.Accepted(accept)
	if machineID != "" {
		if given {
			return "", nil, apierr.Invalid("machine", "machine cannot go with a machine in the path, or with a key.")
		}
		families, err := s.machine(ctx, machineID, &ask)
		if err != nil {
			return "", nil, err
		}
		return format.ContentType(), metrics.Text([]metrics.Part{{Machine: machineID, Families: families}}, format), nil
	}
	ids, left, err := s.machines(ctx, named, given)
	if err != nil {
		return "", nil, err
	}
	return format.ContentType(), metrics.Text(s.parts(ctx, ids, left, &ask), format), nil
}

func (s *Scraper) machine(ctx context.Context, id string, ask *rpc.MetricsAsk) ([]metrics.Family, error) {
	return rpc.Call[[]metrics.Family](ctx, s.Objects, id, "metrics", ask)
}

// machines returns the machines that are named, or the first of all, and how many it leaves
// out.
func (s *Scraper) machines(ctx context.Context, named string, given bool) (ids []string, left int, err error) {
	if given && named == "" {
		return nil, 0, nil
	}
	if given {
		ids = strings.Split(named, ",")
		for _, id := range ids {
			if !rpc.IsMachineID(id) || len(ids) > maxScraped {
				return nil, 0, apierr.Invalid("machine", "machine must be a list of up to %d ids of machines.", maxScraped)
			}
		}
		return ids, 0, nil
	}
	list, err := rpc.Call[struct {
		Data []struct {
			ID string `json:"machineId"`
		} `json:"data"`
		Total int `json:"total"`
	}](ctx, s.Objects, rpc.RegistryID, "list", map[string]int{"limit": maxScraped})
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	return ids, list.Total - len(ids), err
}

// parts returns the metrics of the process and of machines. One that cannot be asked is
// marked, so that those of the others do not depend on it.
func (s *Scraper) parts(ctx context.Context, ids []string, left int, ask *rpc.MetricsAsk) []metrics.Part {
	build := metrics.Family{Name: "weir.build.info", Help: "The version of weir.", Labels: []string{"version"}}
	build.Add(1, s.Version)
	up := metrics.Family{Name: "weir.machine.up", Help: "1 if the machine has answered, 0 if not.",
		Labels: []string{"machine"}}
	out := metrics.Family{Name: "weir.machines.left_out",
		Help: "The machines that this answer leaves out; ask for them with ?machine=."}
	out.Add(float64(left))
	own := []metrics.Family{build}
	if s.Process != nil {
		own = append(own, s.Process()...)
	}
	parts := make([]metrics.Part, 1, len(ids)+1)
	for _, id := range ids {
		families, err := s.machine(ctx, id, ask)
		switch {
		case err == nil:
			up.Add(1, id)
			parts = append(parts, metrics.Part{Machine: id, Families: families})
		case !isNoMachine(err):
			up.Add(0, id)
		}
	}
	parts[0].Families = append(own, up, out)
	return parts
}
