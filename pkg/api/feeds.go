package api

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Limits of reading a status page.
const (
	feedTimeout = 10 * time.Second
	maxFeed     = 1 << 20 // bytes
	maxFeedsDue = 8       // that one call reads
)

// Feeds serves GET /api/health/providers: what the providers of a machine say on their
// public status pages. It is shown, and decides nothing.
type Feeds struct {
	Objects rpc.Stub
	Cache   cache
	Do      upstream.Doer
	Now     func() time.Time
}

// feedView is a row of the answer.
type feedView struct {
	Provider    string   `json:"provider"`
	Name        string   `json:"name"`
	Page        string   `json:"page"`
	Indicator   string   `json:"indicator"` // unknown, or as in rpc.Feed
	Description string   `json:"description,omitempty"`
	Incidents   []string `json:"incidents,omitempty"`
	ReadAt      int64    `json:"readAt,omitempty"`
}

// List serves the route. The pages that no caller has read in the last five minutes are read
// first.
//
//	200 {"object":"list","enabled":true,"data":[feedView]}
func (h *Feeds) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	m, err := load(ctx, h.Cache, c)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object  string     `json:"object"`
		Enabled bool       `json:"enabled"`
		Data    []feedView `json:"data"`
	}{"list", m.Settings.ReadsStatusFeeds(), []feedView{}}
	if pages := statusPages(m); out.Enabled && len(pages) > 0 {
		feeds, err := h.read(ctx, pages)
		if err != nil {
			return nil, err
		}
		for i, p := range pages {
			f := feeds[p.ID]
			if out.Data = append(out.Data, feedView{
				p.ID, p.Name, p.StatusPage, f.Indicator, f.Description, f.Incidents, f.ReadAt,
			}); f.Indicator == "" {
				out.Data[i].Indicator = "unknown"
			}
		}
	}
	return answer(200, rpc.JSON(out)), nil
}

// statusPages returns the providers of a machine's active accounts that have a status page.
func statusPages(m *snapshot.Machine) (list []*provider.Descriptor) {
	seen := map[string]bool{}
	for i := range m.Connections {
		conn := &m.Connections[i]
		if conn.Inactive || seen[conn.Provider] || len(list) == rpc.MaxFeeds {
			continue
		}
		seen[conn.Provider] = true
		if p := provider.Lookup(conn.Provider); p != nil && p.StatusPage != "" {
			list = append(list, p)
		}
	}
	return list
}

// read returns what is known of status pages, by provider, after reading those that are due.
// A page that cannot be read is unknown, until the next time.
func (h *Feeds) read(ctx context.Context, pages []*provider.Descriptor) (map[string]rpc.Feed, error) {
	query := rpc.FeedsQuery{}
	for _, p := range pages {
		query.Providers = append(query.Providers, p.ID)
	}
	taken, err := rpc.Call[rpc.FeedsTaken](ctx, h.Objects, rpc.RegistryID, "feeds.take", query)
	if err != nil {
		return nil, err
	}
	feeds := map[string]rpc.Feed{}
	for _, f := range taken.Feeds {
		feeds[f.Provider] = f
	}
	due := taken.Due[:min(len(taken.Due), maxFeedsDue)]
	pending := make([]upstream.Pending, len(due))
	for i, id := range due {
		pending[i] = h.Do.Start(ctx, &upstream.Request{
			Method: "GET", URL: provider.Lookup(id).StatusPage + "/api/v2/summary.json",
			Header:  httpmsg.Header{{Name: "accept", Value: "application/json"}},
			Timeout: feedTimeout, HeaderTimeout: feedTimeout, MaxBody: maxFeed,
		})
	}
	var got rpc.Feeds
	for i, id := range due {
		f := rpc.Feed{Provider: id}
		if resp, err := pending[i].Wait(); err == nil {
			f = feedOf(id, resp)
		}
		f.ReadAt = h.Now().UnixMilli()
		feeds[id] = f
		got.Feeds = append(got.Feeds, f)
	}
	if len(got.Feeds) > 0 {
		_, err = rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "feeds.put", got)
	}
	return feeds, err
}

// feedOf reads the summary of a status page, as Atlassian's Statuspage and incident.io write
// it: https://status.atlassian.com/api. The Indicator is "" if the answer is anything else.
//
//	{"status":{"indicator":"minor","description":"…"},"incidents":[{"name","status"}]}
func feedOf(id string, resp *upstream.Response) rpc.Feed {
	f := rpc.Feed{Provider: id}
	defer resp.Body.Close()
	body, err := stream.ReadAll(resp.Body, maxFeed)
	if err != nil || resp.Status != 200 {
		return f
	}
	var doc jsonscan.Cursor // which bounds the depth
	doc.Reset(body)
	if doc.Skip(); doc.End() != nil {
		return f
	}
	switch indicator := gjson.GetBytes(body, "status.indicator").Str; indicator {
	case "none", "minor", "major", "critical", "maintenance":
		f.Indicator = strings.Clone(indicator)
	default:
		return f
	}
	f.Description = feedText(gjson.GetBytes(body, "status.description").Str)
	gjson.GetBytes(body, "incidents").ForEach(func(_, incident gjson.Result) bool {
		name := feedText(incident.Get("name").Str)
		if is := incident.Get("status").Str; name != "" && is != "resolved" && is != "postmortem" {
			f.Incidents = append(f.Incidents, name)
		}
		return len(f.Incidents) < rpc.MaxIncidents
	})
	return f
}

// feedText returns a text of a status page on one line, shortened.
func feedText(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // direction marks too
			return ' '
		}
		return r
	}, apierr.Shorten(strings.ToValidUTF8(s, ""), rpc.MaxFeedText))
	return strings.Join(strings.Fields(s), " ")
}
