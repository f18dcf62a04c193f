package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
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
	Passing int   `json:"passing,omitempty"` // counts consecutive temporary failures
	Until   int64 `json:"until,omitempty"`   // not before, as the endpoint asked
	Done    bool  `json:"done,omitempty"`
}

// issued is a connection with new tokens that could not be stored yet.
type issued struct{ row connRow }

// renewable gives the sealed credential that new tokens are had with.
func renewable(c *store.Connection) (field string, sealed secret.Sealed) {
	if s := c.Secrets[store.RefreshToken]; s != "" {
		return store.RefreshToken, s
	}
	if s := c.Secrets[store.ServiceAccount]; s != "" {
		return store.ServiceAccount, s
	}
	return "", ""
}

// retryAfter are the pauses, in ms, after the first temporary failures: a 5xx, or
// a broken connection.
var retryAfter = [...]int64{1000, 4000, 15_000}

// wait returns when a connection may be refreshed again: once in 60 s, sooner
// after a temporary failure, and later each time after calls without an answer or
// with a refusal.
func (i *intentRow) wait(every int64) int64 {
	if i.At == 0 {
		return 0
	}
	if n := i.Passing; n > 0 {
		pause := every << min(max(n-len(retryAfter)-1, 0), 5)
		if n <= len(retryAfter) {
			pause = retryAfter[n-1]
		}
		return max(i.At+pause, i.Until)
	}
	return max(i.At+every<<min(max(i.Unknown-1, i.Refused-1, 0), 5), i.Until)
}

// refresh gives a newer access token than the one of the generation that the
// caller has seen fail. A newer stored one is simply returned. Of those who
// ask at once only one calls the token endpoint, and the new refresh token is
// stored before anybody sees the access token. See
// docs/reference/reliability.md, T60.
func (o *Object) refresh(r *request) (any, error) {
	o.saveTokens(r)
	id, failed := gjson.GetBytes(r.body, "connectionId").Str, gjson.GetBytes(r.body, "tokenGeneration").Int()
	var row connRow
	if !r.exists() || !rpc.IsRowID(id) || !r.load(connPrefix+id, &row) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	flight := r.id + ":" + id
	if u := o.unsaved[flight]; u != nil && u.row.TokenGeneration > failed {
		r.settled = true
		return rpc.Refreshed{Connection: u.row.Connection, Generation: r.meta.Generation, Unsaved: true}, nil
	}
	if row.TokenGeneration > failed && row.Secrets[store.AccessToken] != "" {
		return rpc.Refreshed{Connection: row.Connection, Generation: r.meta.Generation}, nil
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
		switch {
		case intent.Done:
			return nil, apierr.New(409, "refreshed_recently", "the token was refreshed a moment ago")
		case intent.Refused > 0 && intent.Passing == 0:
			return nil, refreshRefused()
		}
		return nil, later("refresh_failed", msec(until-r.now))
	}
	renewal, err := o.renewal(r, &row, field, sealed)
	if err != nil {
		return nil, err
	}
	// What is done to a refresh token is done to every connection that has it.
	rows := append([]connRow{row}, o.copies(r, &row, renewal.refresh)...)
	for i := range rows {
		key := r.id + ":" + rows[i].ID
		if o.flights[key] || o.unsaved[key] != nil {
			return nil, later("refresh_in_progress", time.Second)
		}
	}
	// No other call starts before the outcome is known: even if this process
	// ends, the endpoint may still rotate the token.
	r.intend(rows, intentRow{At: r.now, Unknown: intent.Unknown + 1, Refused: intent.Refused})
	r.due = true
	if err := r.commit(); err != nil {
		return nil, err
	}
	if o.flights == nil {
		o.flights = map[string]bool{}
	}
	for i := range rows {
		o.flights[r.id+":"+rows[i].ID] = true
	}
	got, err := renewal.ask(r.ctx, o)
	for i := range rows {
		delete(o.flights, r.id+":"+rows[i].ID)
	}

	r.reload(o.Now())
	var now connRow
	if !r.exists() || !r.load(connPrefix+id, &now) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	rows = r.unchanged(rows)
	if len(rows) == 0 || rows[0].ID != id {
		return rpc.Refreshed{Connection: now.Connection, Generation: r.meta.Generation}, nil
	}
	r.due = true
	var f *oauth.Failure
	outcome, text := intentRow{At: r.now, Unknown: intent.Unknown, Refused: intent.Refused}, ""
	switch {
	case err == nil:
		issues := make([]*issued, len(rows))
		for i := range rows {
			if err := o.sealTokens(r.id, &rows[i], &got, r.now); err != nil {
				return nil, err
			}
			issues[i] = &issued{rows[i]}
		}
		return o.storeTokens(r, issues)
	case errors.As(err, &f) && f.Kind == oauth.Reauth:
		for i := range rows {
			rows[i].Status, rows[i].LastError = needsReauth, revoked(f.Code, field, intent.Unknown > 0)
			r.del(intentPrefix + rows[i].ID)
			r.putConn(&rows[i])
			r.audit(o, "system", "refresh", rows[i].ID, []string{"status"})
		}
		if err := r.commit(); err != nil {
			return nil, err
		}
		return nil, reauth()
	case f == nil:
		outcome.Refused++
		text = "the token request could not be made"
	case notSent(err) != nil:
		outcome.Passing = intent.Passing + 1
		text = "token endpoint: " + notSent(err).Error()
	case f.Kind == oauth.Refused:
		outcome.Refused++
		outcome.Until, text = r.now+f.RetryAfter.Milliseconds(), shownFailure(f)
	case f.Kind == oauth.Lost, errors.Is(err, upstream.ErrTimeout):
		outcome.Unknown, text = intent.Unknown+1, shownFailure(f)
	default:
		if f.Unknown() {
			outcome.Unknown = intent.Unknown + 1
		}
		outcome.Passing = intent.Passing + 1
		outcome.Until, text = r.now+f.RetryAfter.Milliseconds(), shownFailure(f)
	}
	r.intend(rows, outcome)
	for i := range rows {
		r.setError(rows[i].ID, text)
	}
	if err := r.commit(); err != nil {
		return nil, err
	}
	e := later("refresh_failed", msec(outcome.wait(o.refreshEvery(row.Provider))-r.now))
	if f != nil && f.Kind == oauth.Refused {
		e = refreshRefused()
	}
	e.Err = err
	return nil, e
}

// copies gives the other connections with the same refresh token: a provider
// that rotates would revoke the grant of all when one of them came with a
// token that another has used up.
func (o *Object) copies(r *request, row *connRow, refresh secret.Secret) (out []connRow) {
	if refresh.IsZero() {
		return nil
	}
	for _, c := range r.conns() {
		s := c.Secrets[store.RefreshToken]
		if s == "" || c.ID == row.ID || c.Provider != row.Provider {
			continue
		}
		if plain, err := o.Keyring.Open(r.id, c.ID, store.RefreshToken, s); err == nil && plain.Reveal() == refresh.Reveal() {
			out = append(out, c)
		}
	}
	return out
}

// intend writes what is known of a refresh for each connection.
func (t *tx) intend(rows []connRow, i intentRow) {
	for _, c := range rows {
		i.Generation = c.TokenGeneration
		t.put(intentPrefix+c.ID, i)
	}
}

// unchanged gives the connections as they are now, without those that are gone
// or have another credential since: that moves the generation. That one was
// only sealed anew does not count, the tokens just had must not be lost.
func (t *tx) unchanged(rows []connRow) (out []connRow) {
	for i := range rows {
		var now connRow
		if !t.load(connPrefix+rows[i].ID, &now) {
			continue
		}
		if _, s := renewable(&now.Connection); s != "" && now.TokenGeneration == rows[i].TokenGeneration {
			out = append(out, now)
		}
	}
	return out
}

// storeTokens makes new tokens durable and releases those of the first. Should the storage
// fail it is tried again for some seconds; after that they are released marked
// unsaved, kept in memory, and stored by whatever comes next.
func (o *Object) storeTokens(r *request, issues []*issued) (any, error) {
	key := func(u *issued) string { return r.id + ":" + u.row.ID }
	for _, u := range issues {
		r.applyTokens(u)
	}
	first := issues[0]
	if r.commit() == nil {
		return rpc.Refreshed{Connection: first.row.Connection, Generation: r.meta.Generation}, nil
	}
	if o.unsaved == nil {
		o.unsaved = map[string]*issued{}
	}
	for _, u := range issues {
		o.unsaved[key(u)] = u
	}
	for try := 1; try < saveTries && o.Pause != nil && o.Pause.Pause(r.ctx, savePause) == nil; try++ {
		r.reload(o.Now())
		if o.saveTokens(r); o.unsaved[key(first)] != first {
			return o.refresh(r)
		}
	}
	o.log(fmt.Sprintf("machine %s: new tokens of connection %s could not be stored yet", r.id, first.row.ID))
	r.settled = true
	func() {
		defer func() { recover() }() // the storage fails; the next call saves them too
		r.st.SetAlarm(r.now + 1000)
	}()
	return rpc.Refreshed{Connection: first.row.Connection, Generation: r.meta.Generation, Unsaved: true}, nil
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
		u.row.Secrets, u.row.Last4, u.row.ExpiresAt, u.row.TokenGeneration = tokens.Secrets, tokens.Last4, tokens.ExpiresAt, tokens.TokenGeneration
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

// revoked returns the text that explains to the owner why a sign-in has ended.
func revoked(code, field string, lost bool) string {
	if code == "" {
		code = "no code"
	}
	if field == store.ServiceAccount {
		return "Google no longer accepts the key file (" + code + "). Replace it."
	}
	if lost {
		return "The provider has revoked the sign-in (" + code + "): an earlier answer of its token endpoint was lost, so a refresh token that was already used went out again. Connect the account again."
	}
	return "The provider no longer accepts the sign-in (" + code + "). Connect the account again."
}

// refreshRefused returns the error while the token endpoint refuses the client or
// the request: a retry does not help.
func refreshRefused() *apierr.Error {
	return apierr.New(409, "refresh_refused", "the provider's token endpoint refuses to refresh the token; check the client ID and secret, or connect the account again")
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
