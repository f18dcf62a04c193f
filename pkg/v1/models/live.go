package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

const (
	liveTTL    = 5 * time.Minute  // docs/reference/spec.md, 4.5
	signedTTL  = time.Hour        // of the provider with signed requests, docs/reference/spec.md, 8
	retryAfter = 10 * time.Second // before an upstream that failed is asked again
	lease      = 15 * time.Second // of a refresh; a longer one is taken for lost
	fewAtOnce  = 3                // see LiveLists.AtOnce
	total      = 5 * time.Second  // that one answer waits for discoveries; see form.wait
	patience   = time.Second      // for upstreams that timed out the last time; others have it at first
	afterwards = 15 * time.Second // of the discoveries behind an answer
	maxLive    = 512              // connections whose lists are cached
)

// credentials opens what a connection presents.
type credentials interface {
	// Credential returns the connection's credential in the clear.
	Credential(ctx context.Context, m *snapshot.Machine, conn *store.Connection) (provider.Credential, error)
	// Ready reports whether Credential returns without waiting for a new token.
	Ready(m *snapshot.Machine, conn *store.Connection) bool
	// Refreshed returns a newer one after the upstream refused it with 401 or
	// 403. It returns an error for a connection that cannot be refreshed.
	Refreshed(ctx context.Context, m *snapshot.Machine, conn *store.Connection,
		presented provider.Credential) (provider.Credential, error)
	// Sign signs a request where provider.Authorize said ErrMustSign.
	Sign(req *upstream.Request, row *provider.Descriptor, conn *store.Connection, cred provider.Credential) error
}

// LiveLists caches the upstreams' own model lists of an isolate. A list belongs to
// one connection of one machine with one credential and is gone with any of
// them (docs/reference/reliability.md, T25).
type LiveLists struct {
	Do          upstream.Doer
	Credentials credentials
	Now         func() time.Time
	// AtOnce is how many lists a request asks for at the same time. 0 is 3: on the edge it
	// may have six connections, and a list may need two.
	AtOnce int

	mu     sync.Mutex // of these fields and of all lists
	cached map[owner]*live
	uses   uint64 // requests that have asked for lists
}

type owner struct{ machine, connection string }

// live is the list of one connection.
type live struct {
	digest     [32]byte // of the credential, the connection id and its generation
	list       *Live    // last good one; nil before that
	at         time.Time
	tried      time.Time // when the last attempt ended
	failed     error     // why it failed
	refreshing time.Time // when a refresh began; zero when none is under way
	silent     bool      // the last attempt ran out of time
	used       uint64    // of uses: the last request that asked for it
	full       time.Time // when an attempt last had the whole time of docs/reference/spec.md, 4.2
}

// view is what one request uses: the lists, until when they are fresh, and
// what should be asked again once the request is answered.
type view struct {
	lists map[string]*Live
	until time.Time
	stale []*scope      // with old lists, or without one in time
	hop   httpmsg.Field // for the calls that ask again
}

// lists returns the live lists of the scopes. A scope that was never asked is
// fetched now, for wait in all; the rest is fetched again after the answer. Old
// lists are served as they are. See docs/reference/spec.md, 4.5.
func (l *LiveLists) lists(ctx context.Context, c *auth.Call, scopes []*scope, wait time.Duration) view {
	v := view{lists: map[string]*Live{}}
	now := l.Now()
	v.until = now.Add(liveTTL)
	l.mu.Lock()
	l.uses++
	for _, s := range scopes { // a new entry takes the place of one that no one asks for
		if s.conn != nil {
			if e := l.cached[owner{c.Machine.ID, s.conn.ID}]; e != nil {
				e.used = l.uses
			}
		}
	}
	var missing []*scope
	for _, s := range scopes {
		if !discovered(c, s) {
			continue
		}
		e := l.record(c.Machine, s.conn)
		switch {
		case e.list == nil && now.Sub(e.tried) >= retryAfter:
			missing = append(missing, s)
		case e.list == nil && now.Sub(e.refreshing) < lease:
			v.expire(now.Add(time.Second))
		case e.list == nil:
			v.expire(e.tried.Add(retryAfter))
		case now.Sub(e.at) >= ttl(s.row):
			if now.Sub(e.refreshing) >= lease && now.Sub(e.tried) >= retryAfter {
				v.stale = append(v.stale, s)
			}
			v.expire(now.Add(time.Second))
		default:
			v.expire(e.at.Add(ttl(s.row)))
		}
	}
	l.mu.Unlock()
	hop, err := provider.Hop(c.Header)
	if err != nil {
		missing, v.stale = nil, nil
	}
	v.hop = hop
	if len(missing) > 0 {
		var heard, silent []*scope
		l.mu.Lock()
		for _, s := range missing {
			if l.record(c.Machine, s.conn).silent {
				silent = append(silent, s)
			} else {
				heard = append(heard, s)
			}
		}
		l.mu.Unlock()
		late := l.discover(ctx, c.Machine, hop, heard, wait, wait < total)
		left := wait - l.Now().Sub(now)
		late = append(late, l.discover(ctx, c.Machine, hop, silent, min(left, patience), wait < total)...)
		if len(late) > 0 {
			v.stale = append(v.stale, late...)
			v.expire(l.Now().Add(time.Second))
		}
		now := l.Now()
		l.mu.Lock()
		for _, s := range missing {
			if e := l.record(c.Machine, s.conn); e.list == nil {
				v.expire(now.Add(retryAfter))
			}
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range scopes {
		if discovered(c, s) {
			if e := l.record(c.Machine, s.conn); e.list != nil {
				v.lists[s.conn.ID] = e.list
			}
		}
	}
	return v
}

func (v *view) expire(at time.Time) {
	if at.Before(v.until) {
		v.until = at
	}
}

func ttl(row *provider.Descriptor) time.Duration {
	if row.Auth.Scheme == provider.SigV4 {
		return signedTTL
	}
	return liveTTL
}

// discovered reports whether the list of a provider is asked of its upstream:
// not when the connection names its models, and not for another gateway that is
// itself building a list (docs/reference/spec.md, 4.2.8), where the upstream
// may be that gateway.
func discovered(c *auth.Call, s *scope) bool {
	if s.conn == nil || s.row.Models.None || !s.row.Serves("models") || names(s.conn) {
		return false
	}
	own := s.row.Compatible || s.conn.Data.BaseURL != ""
	return !own || !internal(c)
}

// internal reports whether the call carries the recursion header.
func internal(c *auth.Call) bool {
	return slices.ContainsFunc(c.Header, func(f httpmsg.Field) bool { return f.Name == InternalFetch })
}

// record returns the record of a connection, a new one when the credential or
// the connection has changed. The caller has the lock.
func (l *LiveLists) record(m *snapshot.Machine, conn *store.Connection) *live {
	key := owner{m.ID, conn.ID}
	digest := digestOf(m.ID, conn)
	if e := l.cached[key]; e != nil {
		if e.digest != digest {
			// A discovery under way keeps the old record, which no one reads.
			e = &live{digest: digest, used: l.uses}
			l.cached[key] = e
		}
		return e
	}
	if l.cached == nil {
		l.cached = map[owner]*live{}
	}
	if len(l.cached) >= maxLive {
		l.evict()
	}
	e := &live{digest: digest, used: l.uses}
	l.cached[key] = e
	return e
}

// last returns what is known of the list of a connection.
func (l *LiveLists) last(m *snapshot.Machine, conn *store.Connection) live {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.record(m, conn)
}

// evict forgets the list that was asked for the longest time ago. The caller has the
// lock.
func (l *LiveLists) evict() {
	var oldest owner
	least := uint64(math.MaxUint64)
	for key, e := range l.cached {
		if e.used < least {
			oldest, least = key, e.used
		}
	}
	delete(l.cached, oldest)
}

// digestOf is SHA-256 over the length-prefixed machine, connection, generation
// and sealed secrets. A refreshed access token is the same account still.
func digestOf(machine string, conn *store.Connection) [32]byte {
	b := make([]byte, 0, 512)
	add := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	add(machine)
	add(conn.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(conn.Generation))
	for _, name := range [...]string{store.APIKey, store.AccessKeyID, store.SecretAccessKey, store.SessionToken,
		store.ServiceAccount} {
		add(string(conn.Secrets[name]))
	}
	return sha256.Sum256(b)
}

// claim returns the stale lists that no other request fetches; the caller fetches them.
func (l *LiveLists) claim(m *snapshot.Machine, stale []*scope, now time.Time) (claimed []*scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range stale {
		if e := l.record(m, s.conn); now.Sub(e.refreshing) >= lease {
			e.refreshing = now
			claimed = append(claimed, s)
		}
	}
	return claimed
}

// behind fetches lists after the answer was sent, first those whose last
// attempt with the whole time is the oldest.
func (l *LiveLists) behind(ctx context.Context, m *snapshot.Machine, v *view) {
	l.mu.Lock()
	slices.SortStableFunc(v.stale, func(a, b *scope) int {
		return l.record(m, a.conn).full.Compare(l.record(m, b.conn).full)
	})
	l.mu.Unlock()
	l.discover(ctx, m, v.hop, v.stale, afterwards, false)
}

// discover asks the upstreams, AtOnce at a time, and keeps what they return. A failure
// keeps the last good list. It takes no longer than limit. While a client waits, each
// upstream gets a share of the remaining time, so that silent ones leave time for the
// others, but at least a fifth of it unless many are silent: lists that are a little too
// slow for their share come as far as the time goes. After an answer each has its whole
// time while there is some.
// hurried refreshes no token, which has a time limit of its own. discover returns
// the scopes that were not asked, that timed out after a shortened time, or that
// need a new token.
func (l *LiveLists) discover(ctx context.Context, m *snapshot.Machine, hop httpmsg.Field, scopes []*scope,
	limit time.Duration, hurried bool) (late []*scope) {
	until := l.Now().Add(limit)
	atOnce := cmp.Or(l.AtOnce, fewAtOnce)
	jobs := make([]*job, len(scopes))
	next, silent := 0, 0 // silent is how many more were silent than answered
	for i := range jobs {
		for ; next < len(jobs) && next < i+atOnce; next++ {
			left := until.Sub(l.Now())
			share := fetchTimeout
			if limit < afterwards {
				share = left * time.Duration(atOnce) / time.Duration(len(jobs)-next)
				if silent < 2*atOnce {
					share = max(share, min(patience, limit/5))
				}
				share = min(share, left, fetchTimeout)
			}
			if 0 < share && share <= left {
				jobs[next] = l.start(ctx, m, scopes[next], hop, share, until, hurried)
			}
		}
		j := jobs[i]
		if j == nil {
			now := l.Now()
			l.mu.Lock()
			e := l.record(m, scopes[i].conn)
			e.tried, e.refreshing = now, time.Time{}
			l.mu.Unlock()
			late = append(late, scopes[i])
			continue
		}
		list, err := l.finish(ctx, j)
		timedOut := l.note(j, list, err)
		if timedOut {
			silent++
		} else {
			silent--
		}
		if timedOut && j.short || errors.Is(err, errNoToken) {
			late = append(late, scopes[i])
		}
	}
	return late
}

// note records how a discovery has ended, and reports whether it ran out of time.
func (l *LiveLists) note(j *job, list *Live, err error) (timedOut bool) {
	now, e := l.Now(), j.entry
	l.mu.Lock()
	defer l.mu.Unlock()
	e.tried, e.refreshing, e.failed = now, time.Time{}, err
	if !j.short {
		e.full = now
	}
	if err == nil {
		e.list, e.at = list, now
		j.m.NoteListed(j.s.conn.ID, list.Models)
	}
	e.silent = errors.Is(err, upstream.ErrTimeout)
	return e.silent
}

// ErrNoList is the failure of an answer of 2xx that is not a list of models.
var ErrNoList = errors.New("the answer is no model list")

// errNoToken is the failure of a hurried discovery that needs a new token.
var errNoToken = errors.New("models: the token must be refreshed first")

// job is one discovery under way.
type job struct {
	m       *snapshot.Machine
	s       *scope
	entry   *live
	hop     httpmsg.Field
	cred    provider.Credential
	until   time.Time        // of its calls
	latest  time.Time        // of calls with a refreshed credential
	hurried bool             // refreshes no token
	short   bool             // the time is shorter than that of docs/reference/spec.md, 4.2
	pending upstream.Pending // of the list
	more    upstream.Pending // of the inference profiles; nil for most
	err     error            // why nothing was started
}

func (l *LiveLists) start(ctx context.Context, m *snapshot.Machine, s *scope, hop httpmsg.Field, share time.Duration,
	latest time.Time, hurried bool) *job {
	now := l.Now()
	j := &job{m: m, s: s, hop: hop, until: now.Add(share), latest: latest, short: share < fetchTimeout, hurried: hurried}
	l.mu.Lock()
	j.entry = l.record(m, s.conn)
	j.entry.refreshing = now
	l.mu.Unlock()
	if hurried && !l.Credentials.Ready(m, s.conn) {
		j.err = errNoToken
		return j
	}
	if j.cred, j.err = l.Credentials.Credential(ctx, m, s.conn); j.err != nil {
		return j
	}
	j.pending, j.err = l.send(ctx, j, "models", "")
	if j.err == nil && s.row.Serves(profiles) {
		j.more, _ = l.send(ctx, j, profiles, "maxResults=1000")
	}
	return j
}

// send starts one call of a job within what is left of its time.
func (l *LiveLists) send(ctx context.Context, j *job, endpoint, page string) (upstream.Pending, error) {
	left := j.until.Sub(l.Now())
	if left <= 0 {
		return nil, upstream.ErrTimeout
	}
	var req *upstream.Request
	var err error
	if j.s.row.Compatible {
		req, err = compatibleRequest(j.s.row, j.s.conn, j.cred, left)
	} else {
		size := j.s.row.Models.Size
		if endpoint == profiles {
			size = ""
		}
		req, err = rowRequest(j.s.row, j.s.conn, j.cred, endpoint, []string{size, page}, left)
	}
	if req != nil {
		req.Header.Add(j.hop.Name, j.hop.Value)
	}
	if errors.Is(err, provider.ErrMustSign) {
		err = l.Credentials.Sign(req, j.s.row, j.s.conn, j.cred)
	}
	if err != nil {
		return nil, err
	}
	return l.Do.Start(ctx, req), nil
}

// finish waits for a job, refreshes its credential once after a refusal, and
// reads further pages.
func (l *LiveLists) finish(ctx context.Context, j *job) (*Live, error) {
	if j.err != nil {
		return nil, j.err
	}
	body, err := answer(j.pending.Wait())
	var profilesBody []byte
	if j.more != nil {
		profilesBody, _ = answer(j.more.Wait())
	}
	if refused(err) && j.hurried {
		return nil, errNoToken
	}
	if refused(err) {
		fresh, ferr := l.Credentials.Refreshed(ctx, j.m, j.s.conn, j.cred)
		if ferr != nil {
			return nil, err
		}
		j.cred, j.until = fresh, l.Now().Add(fetchTimeout)
		if j.until.After(j.latest) {
			j.until, j.short = j.latest, true
		}
		if body, err = l.again(ctx, j, "models", ""); err == nil && j.more != nil {
			profilesBody, _ = l.again(ctx, j, profiles, "maxResults=1000")
		}
	}
	if err != nil {
		return nil, err
	}
	models, ok := readList(j.s.row, body)
	if !ok {
		return nil, ErrNoList
	}
	partial := false
	if !j.s.row.Compatible {
		read := len(models)
		for page := 1; ; page++ {
			query, more := nextPage(&j.s.row.Models, body, page, read)
			partial = more
			if query == "" {
				break
			}
			partial = true
			if page == maxPages || len(models) >= maxModels {
				break
			}
			if body, err = l.again(ctx, j, "models", query); err != nil {
				break
			}
			rest, ok := readList(j.s.row, body)
			if !ok {
				break
			}
			models, read = append(models, rest...), len(rest)
		}
	}
	if profilesBody != nil {
		models = withProfiles(models, profilesBody)
	}
	list := &Live{Models: make([]catalog.Model, len(models)), Partial: partial}
	for i := range models {
		list.Models[i] = models[i].Model
	}
	return list, nil
}

// again makes one more call of a job and waits for it.
func (l *LiveLists) again(ctx context.Context, j *job, endpoint, page string) ([]byte, error) {
	p, err := l.send(ctx, j, endpoint, page)
	if err != nil {
		return nil, err
	}
	return answer(p.Wait())
}
