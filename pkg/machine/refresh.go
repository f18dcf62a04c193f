package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/oauth"
	"weir/pkg/store"
)

const (
	refreshEvery = int64(time.Minute / time.Millisecond)
	refreshAhead = int64(5 * time.Minute / time.Millisecond)
	refreshMost  = 5 // of one alarm
	saveTries    = 5
	savePause    = 2 * time.Second
)

// intentRow tells of the last refresh of a connection. It is written before
// the token endpoint is called.
type intentRow struct {
	Generation int64 `json:"generation"` // of the token that failed, or that was had
	At         int64 `json:"at"`
	// Unknown counts the calls since the last answer: what became of them is
	// not known, the refresh token may have been used up.
	Unknown int   `json:"unknown,omitempty"`
	Refused int   `json:"refused,omitempty"` // counts the refusals since the last token
	Until   int64 `json:"until,omitempty"`   // not before, as the endpoint asked
	Done    bool  `json:"done,omitempty"`
}

// issued is a connection with new tokens that could not be stored yet.
type issued struct{ row connRow }

// renewable gives the sealed credential that new tokens are had with.
func renewable(c *store.Connection) (field string, sealed store.Sealed) {
	if s := c.Secrets[store.RefreshToken]; s != "" {
		return store.RefreshToken, s
	}
	if s := c.Secrets[store.ServiceAccount]; s != "" {
		return store.ServiceAccount, s
	}
	return "", ""
}

// wait tells when a connection may be refreshed again: once in 60 s, and after
// calls without an answer or with a refusal later each time.
func (i *intentRow) wait(every int64) int64 {
	if i.At == 0 {
		return 0
	}
	return max(i.At+every<<min(max(i.Unknown-1, i.Refused-1, 0), 5), i.Until)
}

// refresh gives a newer access token than the one of the generation that the
// caller has seen fail. A newer stored one is simply returned. Of those who
// ask at once only one calls the token endpoint, and the new refresh token is
// stored before anybody sees the access token. Reliability T60.
func (o *Object) refresh(r *request) (any, error) {
	o.saveTokens(r)
	id, failed := gjson.GetBytes(r.body, "connectionId").Str, gjson.GetBytes(r.body, "tokenGeneration").Int()
	var row connRow
	if !r.exists() || !isRowID(id) || !r.load(connPrefix+id, &row) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	flight := r.id + ":" + id
	if u := o.unsaved[flight]; u != nil && u.row.TokenGeneration > failed {
		r.settled = true
		return Refreshed{u.row.Connection, r.meta.Generation, true}, nil
	}
	if row.TokenGeneration > failed && row.Secrets[store.AccessToken] != "" {
		return Refreshed{row.Connection, r.meta.Generation, false}, nil
	}
	field, sealed := renewable(&row.Connection)
	switch {
	case row.Status == needsReauth:
		return nil, reauth()
	case sealed == "" || !o.refreshable(&row.Connection):
		return nil, apierr.New(409, "not_refreshable", "the connection's credential cannot be refreshed")
	case o.flights[flight] || o.unsaved[flight] != nil:
		return nil, later("refresh_in_progress", time.Second)
	}
	var intent intentRow
	r.load(intentPrefix+id, &intent)
	if until := intent.wait(o.refreshEvery(row.Provider)); r.now < until && r.now >= intent.At {
		if intent.Done {
			return nil, apierr.New(409, "refreshed_recently", "the token was refreshed a moment ago")
		}
		return nil, later("refresh_failed", msec(until-r.now))
	}
	renewal, err := o.renewal(r, &row, field, sealed)
	if err != nil {
		return nil, err
	}
	r.put(intentPrefix+id, intentRow{Generation: row.TokenGeneration, At: r.now, Unknown: intent.Unknown + 1, Refused: intent.Refused})
	r.due = true
	if err := r.commit(); err != nil {
		return nil, err
	}
	if o.flights == nil {
		o.flights = map[string]bool{}
	}
	o.flights[flight] = true
	got, err := renewal.ask(r.ctx, o)
	delete(o.flights, flight)

	r.reload(o.Now())
	generation := row.TokenGeneration
	var now connRow
	if !r.exists() || !r.load(connPrefix+id, &now) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	// A credential given meanwhile moved the generation. That it was only sealed
	// anew does not count: the tokens just had must not be lost.
	if _, s := renewable(&now.Connection); now.TokenGeneration != generation || s == "" {
		return Refreshed{now.Connection, r.meta.Generation, false}, nil
	}
	r.due = true
	var f *oauth.Failure
	switch {
	case err == nil:
	case !errors.As(err, &f): // nothing was sent
		r.put(intentPrefix+id, intentRow{Generation: generation, At: r.now, Unknown: intent.Unknown, Refused: intent.Refused + 1})
		r.setError(id, "the token request could not be made")
		return nil, o.failedRefresh(r, err, row.Provider)
	case f.Kind == oauth.Reauth:
		now.Status, now.LastError = needsReauth, f.Code
		r.del(intentPrefix + id)
		r.putConn(&now)
		r.audit(o, "system", "refresh", id, []string{"status"})
		if err := r.commit(); err != nil {
			return nil, err
		}
		return nil, reauth()
	case notSent(err) != nil:
		r.put(intentPrefix+id, intentRow{Generation: generation, At: r.now, Unknown: intent.Unknown, Refused: intent.Refused + 1})
		r.setError(id, "token endpoint: "+notSent(err).Error())
		return nil, o.failedRefresh(r, err, row.Provider)
	case !f.Unknown():
		r.put(intentPrefix+id, intentRow{Generation: generation, At: r.now, Unknown: intent.Unknown, Refused: intent.Refused + 1, Until: r.now + f.RetryAfter.Milliseconds()})
		r.setError(id, shownFailure(f))
		return nil, o.failedRefresh(r, err, row.Provider)
	default:
		r.setError(id, shownFailure(f))
		return nil, o.failedRefresh(r, err, row.Provider)
	}
	if err := o.sealTokens(r.id, &now, &got, r.now); err != nil {
		return nil, err
	}
	return o.storeTokens(r, &issued{now})
}

// failedRefresh keeps what is known and makes the answer.
func (o *Object) failedRefresh(r *request, cause error, providerID string) error {
	if err := r.commit(); err != nil {
		return err
	}
	e := later("refresh_failed", msec(o.refreshEvery(providerID)))
	e.Err = cause
	return e
}

// storeTokens makes new tokens durable and releases them. Should the storage
// fail it is tried again for some seconds; after that they are released marked
// unsaved, kept in memory, and stored by whatever comes next.
func (o *Object) storeTokens(r *request, u *issued) (any, error) {
	key := r.id + ":" + u.row.ID
	for try := 1; ; try++ {
		r.applyTokens(u)
		err := r.commit()
		if err == nil {
			delete(o.unsaved, key)
			return Refreshed{u.row.Connection, r.meta.Generation, false}, nil
		}
		if o.unsaved == nil {
			o.unsaved = map[string]*issued{}
		}
		o.unsaved[key] = u
		if try == saveTries || o.Pause == nil || o.Pause.Pause(r.ctx, savePause) != nil {
			o.log(fmt.Sprintf("machine %s: new tokens of connection %s could not be stored yet", r.id, u.row.ID))
			r.settled = true
			func() {
				defer func() { recover() }() // the storage fails; the next call saves them too
				r.st.SetAlarm(r.now + 1000)
			}()
			return Refreshed{u.row.Connection, r.meta.Generation, true}, nil
		}
		r.reload(o.Now())
		if o.unsaved[key] != u { // another call has stored them
			return o.refresh(r)
		}
	}
}

// applyTokens puts new tokens into the turn.
func (t *tx) applyTokens(u *issued) {
	t.put(intentPrefix+u.row.ID, intentRow{Generation: u.row.TokenGeneration, At: t.now, Done: true})
	t.setError(u.row.ID, "")
	row := u.row
	t.putConn(&row)
	u.row.Generation = row.Generation
}

// saveTokens stores tokens that could not be stored before.
func (o *Object) saveTokens(r *request) {
	for key, u := range o.unsaved {
		if key != r.id+":"+u.row.ID {
			continue
		}
		var now connRow
		there := r.exists() && r.load(connPrefix+u.row.ID, &now)
		if _, s := renewable(&now.Connection); !there || s == "" || now.TokenGeneration >= u.row.TokenGeneration {
			delete(o.unsaved, key) // the connection has another credential, or is gone
			continue
		}
		tokens := u.row
		u.row = now
		u.row.Secrets, u.row.ExpiresAt, u.row.TokenGeneration = tokens.Secrets, tokens.ExpiresAt, tokens.TokenGeneration
		u.row.Status, u.row.LastError = "", ""
		r.applyTokens(u)
		if r.commit() == nil {
			delete(o.unsaved, key)
		} else {
			r.reload(o.Now())
		}
	}
}

func reauth() error {
	return apierr.New(409, needsReauth, "the provider no longer accepts the refresh token: connect the account again")
}

func later(code string, wait time.Duration) *apierr.Error {
	e := apierr.New(503, code, "the token cannot be refreshed at the moment")
	e.RetryAfter = max(wait, time.Second)
	return e
}

// refreshAt tells when a connection is refreshed ahead of its expiry, 0 for
// never: five minutes before, but not in the first half of a token's life, and
// while an earlier call's outcome is unknown only once the token has ended.
func (t *tx) refreshAt(c *connRow) int64 {
	if !t.object.refreshable(&c.Connection) || c.Inactive || c.Status != "" || c.ExpiresAt <= 0 || c.Secrets[store.AccessToken] == "" {
		return 0
	}
	var i intentRow
	t.load(intentPrefix+c.ID, &i)
	at := c.ExpiresAt - refreshAhead
	if i.Done {
		at = max(at, i.At+(c.ExpiresAt-i.At)/2)
	}
	if i.Unknown > 0 && !i.Done {
		at = c.ExpiresAt
	}
	return max(at, i.wait(t.object.refreshEvery(c.Provider)), 1)
}

// refreshDue finds the earliest of them.
func (t *tx) refreshDue() int64 {
	first := int64(0)
	for _, c := range t.conns() {
		if at := t.refreshAt(&c); at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// refreshDueNow refreshes what is due, through the stub: a call of the data
// plane for the same token is then the same call.
func (o *Object) refreshDueNow(r *request) {
	if r.meta.RefreshAt == 0 || r.meta.RefreshAt > r.now || o.Objects == nil || !r.exists() {
		return
	}
	n := 0
	for _, c := range r.conns() {
		if at := r.refreshAt(&c); at == 0 || at > r.now {
			continue
		}
		if n++; n > refreshMost {
			break
		}
		body := fmt.Appendf(nil, `{"connectionId":"%s","tokenGeneration":%d}`, c.ID, c.TokenGeneration)
		if _, _, err := o.Objects.Call(r.ctx, r.id, "refresh", body); err != nil {
			o.log(fmt.Sprintf("machine %s: refresh of connection %s ahead of its expiry did not run", r.id, c.ID))
		}
	}
	r.reload(o.Now())
	r.due = true
	if r.commit() != nil {
		r.reload(o.Now())
	}
}
