package machine

import (
	"encoding/json"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// feedPrefix is the prefix of the rows of status pages in the registry, by provider.
const feedPrefix = "feed:"

// feedRow is what the registry stores of a status page.
type feedRow struct {
	rpc.Feed
	AskedAt int64 `json:"askedAt"` // when a caller was last told to read it
}

// feedsTake returns what is stored of status pages, and tells the caller which to read.
func (o *Object) feedsTake(r *storage.Call) (any, error) {
	var q rpc.FeedsQuery
	if json.Unmarshal(r.Body, &q) != nil || len(q.Providers) > rpc.MaxFeeds {
		return nil, apierr.Invalid("", "The query is not readable.")
	}
	var out rpc.FeedsTaken
	for _, id := range q.Providers {
		row := feedRow{Feed: rpc.Feed{Provider: id}}
		r.Load(feedPrefix+id, &row)
		if since := r.Now - row.AskedAt; since < 0 || since >= rpc.FeedEvery {
			row.AskedAt = r.Now
			out.Due = append(out.Due, id)
			putFeed(r.Tx, &row)
		}
		out.Feeds = append(out.Feeds, row.Feed)
	}
	return out, nil
}

// feedsPut stores what a caller has read.
func (o *Object) feedsPut(r *storage.Call) (any, error) {
	var in rpc.Feeds
	if json.Unmarshal(r.Body, &in) != nil || len(in.Feeds) > rpc.MaxFeeds {
		return nil, apierr.Invalid("", "The feeds are not readable.")
	}
	for _, f := range in.Feeds {
		putFeed(r.Tx, &feedRow{f, r.Now})
	}
	return struct{}{}, nil
}

func putFeed(t *storage.Tx, row *feedRow) {
	t.Meta.ID = rpc.RegistryID
	t.Meta.Generation++ // the registry is never published
	t.Put(feedPrefix+row.Provider, row)
}
