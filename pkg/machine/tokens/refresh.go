package tokens

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

const (
	refreshEvery = int64(time.Minute / time.Millisecond)
	refreshAhead = int64(5 * time.Minute / time.Millisecond)
	refreshMost  = 5                  // of one alarm
	maxSkew      = 5 * storage.Minute // of the clocks of two programs that serve the object
	saveTries    = 5
	savePause    = 2 * time.Second
)

// IntentRow describes the last refresh of a connection. It is written before
// the token endpoint is called.
type IntentRow struct {
	Generation int64 `json:"generation"` // of the token that failed, or of the new one
	At         int64 `json:"at"`
	// Unknown counts the calls since the last answer: their outcome is not
	// known, and the refresh token may have been used.
	Unknown int   `json:"unknown,omitempty"`
	Refused int   `json:"refused,omitempty"` // counts the refusals since the last token
	Passing int   `json:"passing,omitempty"` // counts consecutive temporary failures
	Until   int64 `json:"until,omitempty"`   // not before, as the endpoint asked
	Done    bool  `json:"done,omitempty"`
	// Calling reports that the call's outcome is not stored: it may still run, also
	// in another program that serves the object.
	Calling bool `json:"calling,omitempty"`
}

// renewable returns the sealed credential that is exchanged for new tokens.
func renewable(c *store.Connection) (field string, sealed secret.Sealed) {
	if s := c.Secrets[store.RefreshToken]; s != "" {
		return store.RefreshToken, s
	}
	if s := c.Secrets[store.ServiceAccount]; s != "" {
		return store.ServiceAccount, s
	}
	return "", ""
}

// retryAfter are the pauses, in ms, after the first temporary failures: a 5xx,
// or a broken connection.
var retryAfter = [...]int64{1000, 4000, 15_000}

// wait returns when a connection may be refreshed again: once in 60 s, sooner
// after a temporary failure, and later each time after calls without an answer
// or with a refusal.
func (i *IntentRow) wait(every int64) int64 {
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

// Refresh returns a newer access token than the one of the generation that the
// caller has seen fail. A newer stored one is simply returned. Of those who
// ask at once only one calls the token endpoint, and the new refresh token is
// stored before anybody sees the access token. See
// docs/reference/reliability.md, T60.
func (o *Service) Refresh(r *storage.Call) (any, error) {
	o.SaveTokens(r)
	id, failed := gjson.GetBytes(r.Body, "connectionId").Str, gjson.GetBytes(r.Body, "tokenGeneration").Int()
	var row storage.Connection
	if !r.Exists() || !rpc.IsRowID(id) || !r.Load(storage.ConnectionPrefix+id, &row) {
		return nil, rpc.ErrNoConnection()
	}
	flight := r.ID + ":" + id
	if u := o.unsaved(flight); u != nil && u.row.TokenGeneration > failed {
		r.Settled = true
		return rpc.Refreshed{Connection: u.row.Connection, Generation: r.Meta.Generation, Unsaved: true, Earlier: true}, nil
	}
	if row.TokenGeneration > failed && row.Secrets[store.AccessToken] != "" {
		return rpc.Refreshed{Connection: row.Connection, Generation: r.Meta.Generation, Earlier: true}, nil
	}
	field, sealed := renewable(&row.Connection)
	switch {
	case row.Status == storage.NeedsReauth:
		return nil, reauth()
	case sealed == "" || !o.refreshable(&row.Connection):
		return nil, apierr.New(409, "not_refreshable", "This account has no sign-in that can be renewed.")
	case o.busy(flight):
		return nil, later("refresh_in_progress", time.Second)
	}
	var intent IntentRow
	r.Load(storage.IntentPrefix+id, &intent)
	if until := intent.wait(o.refreshEvery(row.Provider)); r.Now < until && intent.At <= r.Now+maxSkew {
		switch {
		case intent.Calling:
			return nil, later("refresh_in_progress", time.Second)
		case intent.Done:
			return nil, apierr.New(409, "refreshed_recently", "The token was refreshed a moment ago. Wait before you refresh it again.")
		case intent.Refused > 0 && intent.Passing == 0:
			return nil, refreshRefused()
		}
		return nil, later("refresh_failed", storage.Milliseconds(until-r.Now))
	}
	renewal, err := o.renewal(r, &row, field, sealed)
	if err != nil {
		return nil, err
	}
	// A change of a refresh token applies to every connection that has it.
	rows := append([]storage.Connection{row}, o.copies(r, &row, renewal.refresh)...)
	for i := range rows {
		if o.busy(r.ID + ":" + rows[i].ID) {
			return nil, later("refresh_in_progress", time.Second)
		}
	}
	// No other call starts before the outcome is known: even if this process
	// ends, the endpoint may still rotate the token.
	intend(r.Tx, rows, IntentRow{At: r.Now, Unknown: intent.Unknown + 1, Refused: intent.Refused, Calling: true})
	r.Due = true
	if err := r.Commit(); err != nil {
		return nil, err
	}
	ctx, err := r.Outside()
	if err != nil {
		return nil, err
	}
	o.fly(r.ID, rows)
	got, err := renewal.ask(ctx, o)
	o.land(r.ID, rows)

	r.Reload(o.Now())
	var now storage.Connection
	there := r.Exists() && r.Load(storage.ConnectionPrefix+id, &now)
	current := unchanged(r.Tx, rows)
	switch {
	case r.Err() != nil: // new tokens must not be lost; they are stored later if nothing has changed
	case !there:
		return nil, rpc.ErrNoConnection()
	case len(current) == 0 || current[0].ID != id:
		return rpc.Refreshed{Connection: now.Connection, Generation: r.Meta.Generation}, nil
	default:
		rows = current
	}
	r.Due = true
	var f *oauth.Failure
	outcome, text := IntentRow{At: r.Now, Unknown: intent.Unknown, Refused: intent.Refused}, ""
	switch {
	case err == nil:
		issues := make([]*issued, len(rows))
		for i := range rows {
			if err := o.sealTokens(r.ID, &rows[i], &got, r.Now); err != nil {
				return nil, err
			}
			issues[i] = &issued{rows[i]}
		}
		return o.storeTokens(r, issues)
	case errors.As(err, &f) && f.Kind == oauth.Reauth:
		for i := range rows {
			rows[i].Status, rows[i].LastError = storage.NeedsReauth, revoked(f.Code, field, intent.Unknown > 0)
			r.Del(storage.IntentPrefix + rows[i].ID)
			r.PutConnection(&rows[i])
			r.Audit("system", "refresh", rows[i].ID, []string{"status"})
		}
		if err := r.Commit(); err != nil {
			return nil, err
		}
		return nil, reauth()
	case f == nil:
		outcome.Refused++
		text = notRenewed + "the request for it could not be made"
	case NotSent(err) != nil:
		outcome.Passing = intent.Passing + 1
		text = notRenewed + NotSent(err).Error()
	case f.Kind == oauth.Refused:
		outcome.Refused++
		outcome.Until, text = r.Now+f.RetryAfter.Milliseconds(), FailureText(f)
	case f.Kind == oauth.Lost, errors.Is(err, upstream.ErrTimeout):
		outcome.Unknown, text = intent.Unknown+1, FailureText(f)
	default:
		if f.Unknown() {
			outcome.Unknown = intent.Unknown + 1
		}
		outcome.Passing = intent.Passing + 1
		outcome.Until, text = r.Now+f.RetryAfter.Milliseconds(), FailureText(f)
	}
	intend(r.Tx, rows, outcome)
	for i := range rows {
		r.SetError(rows[i].ID, text)
	}
	if err := r.Commit(); err != nil {
		return nil, err
	}
	e := later("refresh_failed", storage.Milliseconds(outcome.wait(o.refreshEvery(row.Provider))-r.Now))
	if f != nil && f.Kind == oauth.Refused {
		e = refreshRefused()
	}
	e.Err = err
	return nil, e
}

// busy reports whether a refresh of a connection is under way, or its tokens are not stored.
func (o *Service) busy(flight string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Flights[flight] || o.Unsaved[flight] != nil
}

// unsaved returns the tokens of a connection that are not stored, or nil.
func (o *Service) unsaved(flight string) *issued {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Unsaved[flight]
}

// fly notes that a refresh of connections begins.
func (o *Service) fly(machineID string, rows []storage.Connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Flights == nil {
		o.Flights = map[string]bool{}
	}
	for i := range rows {
		o.Flights[machineID+":"+rows[i].ID] = true
	}
}

// land notes that a refresh of connections has ended.
func (o *Service) land(machineID string, rows []storage.Connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range rows {
		delete(o.Flights, machineID+":"+rows[i].ID)
	}
}

// keep notes tokens that could not be stored.
func (o *Service) keep(machineID string, issues []*issued) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Unsaved == nil {
		o.Unsaved = map[string]*issued{}
	}
	for _, u := range issues {
		o.Unsaved[machineID+":"+u.row.ID] = u
	}
}

// saved notes that the tokens of a connection are stored, or of no use.
func (o *Service) saved(flight string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.Unsaved, flight)
}

// unsavedOf returns the tokens of a machine that are not stored.
func (o *Service) unsavedOf(machineID string) (list []*issued) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, u := range o.Unsaved {
		if strings.HasPrefix(key, machineID+":") {
			list = append(list, u)
		}
	}
	return list
}

// copies returns the other connections with the same refresh token: a provider
// that rotates would revoke the grant of all when one of them came with a
// token that another has used up.
func (o *Service) copies(r *storage.Call, row *storage.Connection, refresh secret.Secret) (out []storage.Connection) {
	if refresh.IsZero() {
		return nil
	}
	for _, c := range r.Connections() {
		s := c.Secrets[store.RefreshToken]
		if s == "" || c.ID == row.ID || c.Provider != row.Provider {
			continue
		}
		if plain, err := o.Keyring.Open(r.ID, c.ID, store.RefreshToken, s); err == nil && plain.Reveal() == refresh.Reveal() {
			out = append(out, c)
		}
	}
	return out
}

// intend writes what is known of a refresh for each connection.
func intend(t *storage.Tx, rows []storage.Connection, i IntentRow) {
	for _, c := range rows {
		i.Generation = c.TokenGeneration
		t.Put(storage.IntentPrefix+c.ID, i)
	}
}

// unchanged returns the connections as they are now, without those that are
// gone or have another credential since: that moves the generation. That one
// was only sealed again does not count, the tokens just had must not be lost.
func unchanged(t *storage.Tx, rows []storage.Connection) (out []storage.Connection) {
	for i := range rows {
		var now storage.Connection
		if !t.Load(storage.ConnectionPrefix+rows[i].ID, &now) {
			continue
		}
		if _, s := renewable(&now.Connection); s != "" && now.TokenGeneration == rows[i].TokenGeneration {
			out = append(out, now)
		}
	}
	return out
}

// storeTokens makes new tokens durable and releases those of the first. Should
// the storage fail it is tried again for some seconds; after that they are
// released marked unsaved, kept in memory, and stored by whatever comes next.
func (o *Service) storeTokens(r *storage.Call, issues []*issued) (any, error) {
	for _, u := range issues {
		applyTokens(r.Tx, u)
	}
	first := issues[0]
	if r.Commit() == nil {
		return rpc.Refreshed{Connection: first.row.Connection, Generation: r.Meta.Generation}, nil
	}
	o.keep(r.ID, issues)
	for try := 1; try < saveTries && o.pause(r); try++ {
		r.Reload(o.Now())
		if o.SaveTokens(r); o.unsaved(r.ID+":"+first.row.ID) != first {
			return o.Refresh(r)
		}
	}
	o.WriteLog(fmt.Sprintf("machine %s: new tokens of account %s could not be stored yet", r.ID, first.row.ID))
	r.Settled = true
	r.SetAlarm(r.Now + 1000) // should it fail, the next call saves them too
	return rpc.Refreshed{Connection: first.row.Connection, Generation: r.Meta.Generation, Unsaved: true}, nil
}

// pause waits for a storage that has failed, and reports whether it may have come back.
func (o *Service) pause(r *storage.Call) bool {
	ctx, err := r.Outside()
	return err == nil && o.Pause != nil && o.Pause.Pause(ctx, savePause) == nil
}

// applyTokens puts new tokens into the turn.
func applyTokens(t *storage.Tx, u *issued) {
	t.Put(storage.IntentPrefix+u.row.ID, IntentRow{Generation: u.row.TokenGeneration, At: t.Now, Done: true})
	t.SetError(u.row.ID, "")
	row := u.row
	t.PutConnection(&row)
	u.row.Generation = row.Generation
}

// SaveTokens stores tokens that could not be stored before.
func (o *Service) SaveTokens(r *storage.Call) {
	for _, u := range o.unsavedOf(r.ID) {
		flight := r.ID + ":" + u.row.ID
		var now storage.Connection
		there := r.Exists() && r.Load(storage.ConnectionPrefix+u.row.ID, &now)
		if r.Err() != nil {
			return
		}
		if _, s := renewable(&now.Connection); !there || s == "" || now.TokenGeneration >= u.row.TokenGeneration {
			o.saved(flight) // the connection has another credential, or is gone
			continue
		}
		tokens := u.row
		u.row = now
		u.row.Secrets, u.row.Last4, u.row.ExpiresAt, u.row.TokenGeneration = tokens.Secrets, tokens.Last4, tokens.ExpiresAt,
			tokens.TokenGeneration
		u.row.Status, u.row.LastError = "", ""
		applyTokens(r.Tx, u)
		if r.Commit() == nil {
			o.saved(flight)
		} else {
			r.Reload(o.Now())
		}
	}
}

func reauth() error {
	return apierr.New(409, storage.NeedsReauth,
		"The provider has ended the sign-in of this account. Connect it again.")
}

// revoked returns the text that explains to the owner why a sign-in has ended.
func revoked(code, field string, lost bool) string {
	code = cmp.Or(code, "no code")
	if field == store.ServiceAccount {
		return "Google no longer accepts the key file (" + code + "). Replace it."
	}
	if lost {
		return "The provider has revoked the sign-in (" + code +
			"): an earlier answer of its token endpoint was lost, so a refresh token that was already used went out again. Connect the account again."
	}
	return "The provider no longer accepts the sign-in (" + code + "). Connect the account again."
}

// refreshRefused returns the error while the token endpoint refuses the client
// or the request: a retry does not help.
func refreshRefused() *apierr.Error {
	return apierr.New(409, "refresh_refused",
		"The provider refuses to refresh the token. Check the client ID and secret, or connect the account again.")
}

func later(code string, wait time.Duration) *apierr.Error {
	e := apierr.New(503, code, "The token cannot be refreshed at the moment. Try again later.")
	e.RetryAfter = max(wait, time.Second)
	return e
}

// refreshAt returns when a connection is refreshed ahead of its expiry, 0 for
// never: five minutes before, but not in the first half of a token's life, and
// while an earlier call's outcome is unknown only once the token has ended.
func (o *Service) refreshAt(t *storage.Tx, c *storage.Connection) int64 {
	if !o.refreshable(&c.Connection) || c.Inactive || c.Status != "" || c.ExpiresAt <= 0 ||
		c.Secrets[store.AccessToken] == "" {
		return 0
	}
	var i IntentRow
	t.Load(storage.IntentPrefix+c.ID, &i)
	at := c.ExpiresAt - refreshAhead
	if i.Done {
		at = max(at, i.At+(c.ExpiresAt-i.At)/2)
	}
	if i.Unknown > 0 && !i.Done {
		at = c.ExpiresAt
	}
	return max(at, i.wait(o.refreshEvery(c.Provider)), 1)
}

// NextRefresh returns the time of the earliest of them.
func (o *Service) NextRefresh(t *storage.Tx) int64 {
	first := int64(0)
	for _, c := range t.Connections() {
		if at := o.refreshAt(t, &c); at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// RefreshDue refreshes what is due, through the stub: a call of the data
// plane for the same token is then the same call.
func (o *Service) RefreshDue(r *storage.Call) {
	if r.Meta.RefreshAt == 0 || r.Meta.RefreshAt > r.Now || o.Objects == nil || !r.Exists() {
		return
	}
	n := 0
	for _, c := range r.Connections() {
		if at := o.refreshAt(r.Tx, &c); at == 0 || at > r.Now {
			continue
		}
		if n++; n > refreshMost {
			break
		}
		ctx, err := r.Outside()
		if err != nil {
			return
		}
		body := fmt.Appendf(nil, `{"connectionId":"%s","tokenGeneration":%d}`, c.ID, c.TokenGeneration)
		if _, _, err := o.Objects.Call(ctx, r.ID, "refresh", body); err != nil {
			o.WriteLog(fmt.Sprintf("machine %s: refresh of account %s ahead of its expiry did not run", r.ID, c.ID))
		}
	}
	r.Reload(o.Now())
	r.Due = true
	if r.Commit() != nil {
		r.Reload(o.Now())
	}
}
