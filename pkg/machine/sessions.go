package machine

import (
	"cmp"
	"encoding/json"
	"slices"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const (
	sessionPrefix = "session:"
	attemptPrefix = "attempt:"

	sessionLife  = 12 * storage.Hour
	sessionAhead = 30 * storage.Minute // of a clock that was set back
	maxSessions  = 50                  // of one object; one more replaces the oldest
	sessionTouch = storage.Minute

	attemptWindow = 15 * storage.Minute
	attemptMost   = 10  // failed ones from one address in a window
	attemptLocks  = 4   // doublings of the wait
	maxAttempts   = 500 // rows; the oldest are replaced
)

type sessionRow struct {
	KeyID     string `json:"keyId,omitempty"`
	Person    string `json:"person,omitempty"`    // the id; a session has one of the two, or is the operator's
	KeyDigest string `json:"keyDigest,omitempty"` // of the key as it was presented
	Bound     string `json:"bound,omitempty"`
	CreatedAt int64  `json:"createdAt"`
	SeenAt    int64  `json:"seenAt"`
	Sid       string `json:"sid,omitempty"`
	Until     int64  `json:"until,omitempty"` // 0 is sessionLife after CreatedAt
}

// end returns when a session ends at the latest.
func (s *sessionRow) end() int64 {
	if s.Until != 0 {
		return min(s.Until, s.CreatedAt+sessionLife)
	}
	return s.CreatedAt + sessionLife
}

func (s *sessionRow) over(now int64) bool {
	return now >= s.end() || s.SeenAt > now+sessionAhead
}

func (s *sessionRow) shown(key *store.Key) rpc.Session {
	return rpc.Session{Key: key, AuthAt: s.CreatedAt, IdleAt: s.end(), ExpiresAt: s.end()}
}

func errNoSession() error {
	return apierr.New(401, "session_expired", "Sign in again: the session has ended.")
}

// sessionKey returns the key of a session while it may still manage. The
// operator has none.
func sessionKey(r *storage.Call, id, digest string) (*store.Key, bool) {
	if r.ID == rpc.RegistryID {
		return nil, id == ""
	}
	k, ok := r.ManageKey(id)
	if !ok || !r.Exists() || digest != "" && !k.Accepts(digest, r.Now) {
		return nil, false
	}
	k.Digest, k.Earlier = "", nil
	return &k.Key, true
}

// dropSessions drops the sessions that are over, the one that is replaced, and the least recently
// used of the others of an owner, so that one more makes no more than most.
func dropSessions(t *storage.Tx, replaces string, isOwn func(s *sessionRow) bool, most int) {
	if rpc.IsDigest(replaces) {
		t.Del(sessionPrefix + replaces)
	}
	type stored struct {
		name string
		at   int64
	}
	var live []stored
	for _, row := range t.List(sessionPrefix) {
		var s sessionRow
		if !t.Load(row.Key, &s) || s.over(t.Now) {
			t.Del(row.Key)
		} else if isOwn(&s) {
			live = append(live, stored{row.Key, s.SeenAt})
		}
	}
	slices.SortStableFunc(live, func(a, b stored) int { return cmp.Compare(a.at, b.at) })
	for i := 0; i <= len(live)-most; i++ {
		t.Del(live[i].name)
	}
}

// sessionOpen keeps a new session, and drops what is over.
func (o *Object) sessionOpen(r *storage.Call) (any, error) {
	var in rpc.SessionOpen
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	key, ok := sessionKey(r, in.KeyID, in.KeyDigest)
	if !ok {
		return nil, errNoSession()
	}
	dropSessions(r.Tx, in.Replaces, func(s *sessionRow) bool { return s.Person == "" }, maxSessions)
	row := sessionRow{KeyID: in.KeyID, KeyDigest: in.KeyDigest, Bound: in.Bound, CreatedAt: r.Now, SeenAt: r.Now}
	r.Put(sessionPrefix+in.Digest, row)
	o.signedIn(r, &in)
	if key != nil {
		r.Audit("key:"+o.MaskedKey(key.ID), "sign-in", "", nil)
	} else {
		registryAudit(r.Tx, storage.Record{Actor: "operator", Action: "sign-in"})
	}
	return row.shown(key), nil
}

// sessionCheck returns a session that lives, and notes that it was used.
func (o *Object) sessionCheck(r *storage.Call) (any, error) {
	var in rpc.SessionCheck
	var row sessionRow
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) || !r.Load(sessionPrefix+in.Digest, &row) {
		return nil, errNoSession()
	}
	key, ok := sessionKey(r, row.KeyID, row.KeyDigest)
	var person personRow
	if row.Person != "" {
		person, ok = loadPerson(r.Tx, row.Person)
		ok = ok && person.roles().Any()
	} else if row.KeyID == "" && row.Bound != in.Bound {
		ok = false
	}
	if !ok || row.over(r.Now) {
		r.Del(sessionPrefix + in.Digest)
		if err := r.Commit(); err != nil {
			return nil, err
		}
		return nil, errNoSession()
	}
	if r.Now >= row.SeenAt+sessionTouch {
		row.SeenAt = r.Now
		r.Put(sessionPrefix+in.Digest, row)
	}
	if row.Person != "" {
		return o.ofPerson(&row, &person, r.Now), nil
	}
	return row.shown(key), nil
}

// sessionEnd ends a session; with all every session of whoever has it.
func (o *Object) sessionEnd(r *storage.Call) (any, error) {
	var in rpc.SessionEnd
	var row sessionRow
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) || !r.Load(sessionPrefix+in.Digest, &row) {
		return struct{}{}, nil
	}
	if !in.All {
		r.Del(sessionPrefix + in.Digest)
		return struct{}{}, nil
	}
	n := endSessions(r.Tx, func(s *sessionRow) bool { return s.KeyID == row.KeyID && s.Person == row.Person })
	switch key := o.MaskedKey(row.KeyID); {
	case key != "":
		r.Audit("key:"+key, "sessions.end", key, []string{sessionCount(n)})
	case row.Person != "":
		auditEnded(r.Tx, "person:"+row.Person, row.Person, n)
	default:
		auditEnded(r.Tx, "operator", "operator", n)
	}
	return struct{}{}, nil
}

// attemptRow counts the failed sign-ins from an address.
type attemptRow struct {
	From  int64 `json:"from"` // of the window
	Count int   `json:"count"`
	Until int64 `json:"until,omitempty"` // until then further ones get 429
	Locks int   `json:"locks,omitempty"`
}

// sessionFailed counts a failed sign-in. Only failed attempts are counted and limited: valid
// credentials have at least 128 bits and cannot be guessed.
func (o *Object) sessionFailed(r *storage.Call) (any, error) {
	var in rpc.SignInFailed
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsLowerAlphanumeric(in.From, 32) || len(in.Reason) > 100 ||
		len(in.Network) > 50 {
		return nil, apierr.Invalid("from", "from is not a digest.")
	}
	if err := attempt(r, in.From, attemptMost); err != nil {
		return nil, err
	}
	if in.Reason != "" {
		fields := []string{in.Reason}
		if in.Network != "" {
			fields = append(fields, "from "+in.Network)
		}
		registryAudit(r.Tx, storage.Record{Actor: "anonymous", Action: "sign-in.refused", Fields: fields})
	}
	return struct{}{}, nil
}

// waiting refuses who must wait after too many attempts.
func waiting(r *storage.Call, from string) error {
	var a attemptRow
	if r.Load(attemptPrefix+from, &a); a.Until > r.Now {
		return tooMany(a.Until - r.Now)
	}
	return nil
}

// attempt counts an attempt from somewhere. Beyond the limit further ones must wait 15
// minutes, then twice as long each time, up to four hours. A refusal is stored.
func attempt(r *storage.Call, from string, most int) error {
	if rows := r.List(attemptPrefix); len(rows) >= maxAttempts {
		oldest, at := "", int64(0)
		for _, row := range rows {
			var a attemptRow
			json.Unmarshal(row.Value, &a)
			if last := max(a.From+attemptWindow, a.Until); last < r.Now {
				r.Del(row.Key)
			} else if oldest == "" || last < at {
				oldest, at = row.Key, last
			}
		}
		if len(r.Order) == 0 {
			r.Del(oldest)
		}
	}
	name := attemptPrefix + from
	var a attemptRow
	r.Load(name, &a)
	if err := waiting(r, from); err != nil {
		return err
	}
	if r.Now >= a.From+attemptWindow || a.From > r.Now {
		if r.Now > a.Until+storage.Day {
			a.Locks = 0
		}
		a.From, a.Count = r.Now, 0
	}
	if a.Count++; a.Count > most {
		wait := attemptWindow << min(a.Locks, attemptLocks)
		a.Count, a.Locks, a.Until = 0, a.Locks+1, r.Now+wait
		r.Put(name, a)
		if err := r.Commit(); err != nil {
			return err
		}
		return tooMany(wait)
	}
	r.Put(name, a)
	return nil
}

func tooMany(waitMs int64) error {
	e := apierr.New(429, "too_many_attempts", "Too many sign-in attempts. Try again in a few minutes.")
	e.RetryAfter = storage.Milliseconds(waitMs)
	return e
}
