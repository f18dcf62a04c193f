package rpc

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// RequestPage is the answer to GET /api/requests.
type RequestPage struct {
	Object string          `json:"object"`
	Data   []store.Request `json:"data"`
	More   bool            `json:"has_more"`
	Cursor string          `json:"cursor,omitempty"` // of the next page, if there is more
	// Kept is the number of requests that are listed, of Total since the oldest of them.
	Kept  int64 `json:"kept"`
	Total int64 `json:"total"`
	// LostFailureAt is when the last failure came in that is not listed, Unix
	// milliseconds; 0 if all are.
	LostFailureAt int64 `json:"lostFailureAt,omitempty"`
	// Scan is set if only a part of the list was read, see ManageCall. The gateway
	// removes it.
	Scan int64 `json:"scan,omitempty"`
}

// RequestQuery is the query of a list of requests:
//
//	q           a part of the id, the models, the endpoint, the provider, a tag, the error or a failed attempt
//	status      429, 4xx, error (400 and above, but not client_left), client_left
//	code        of the failure, or of a failed attempt's
//	outcome     succeeded, provider_failed, no_account, refused or left
//	reason      of a refusal: key_limit, budget, concurrency, key, model, request
//	key, endpoint
//	tag         one of its tags
//	tool        that of its user agent, see setup.ToolOf
//	connection, provider   of the answer, or of a failed attempt
//	model       the id asked for, the one that served, or that of a failed attempt
//	failed      true: with a failure at any attempt
//	from, to    Unix milliseconds
//	minDurationMs, minFirstTokenMs, minCostUsd
//	sort        of requestOrders; time is that of their ends
//	order       desc or asc
//	limit       of a page
//	cursor      that of the page before
//	before      the number of a request: only older ones
//	after       the number of a request: only newer ones
type RequestQuery struct {
	Before, After int64                       // numbers of requests; 0 for none
	Wanted        func(r *store.Request) bool // reports whether a request is listed

	limit     int
	from      int64
	order     requestOrder
	ascending bool
	past      *requestKey // that the cursor names
}

// RequestParameters are the names of the parameters of a RequestQuery.
var RequestParameters = [...]string{
	"q", "status", "code", "key", "tag", "tool", "endpoint", "connection", "provider", "model", "outcome", "reason", "failed",
	"from", "to",
	"minDurationMs", "minFirstTokenMs", "minCostUsd", "sort", "order", "limit", "cursor", "before", "after",
}

// requestOrder is what requests are sorted by: a number or a text.
type requestOrder struct {
	name   string
	number func(r *store.Request) float64
	text   func(r *store.Request) string
}

var requestOrders = [...]requestOrder{
	{name: "time"},
	{name: "duration", number: func(r *store.Request) float64 { return float64(r.LatencyMs) }},
	{name: "first_token", number: func(r *store.Request) float64 { return float64(r.FirstMs) }},
	{name: "cost", number: func(r *store.Request) float64 { return r.CostUSD }},
	{name: "status", number: func(r *store.Request) float64 { return float64(r.Status) }},
	{name: "key", text: func(r *store.Request) string { return r.KeyID }},
	{name: "model", text: func(r *store.Request) string { return cmp.Or(r.Model, r.Asked) }},
	{name: "connection", text: func(r *store.Request) string { return r.ConnectionID }},
	{name: "tag", text: func(r *store.Request) string { return strings.Join(r.Tags, ",") }},
}

// requestKey is the place of a request in an order. Seq makes it the only one there.
type requestKey struct {
	number float64
	text   string
	seq    int64
}

// MaxRequestsPage is the largest number of requests in one answer.
const MaxRequestsPage = 200

// ReadRequestQuery reads the query of GET /api/requests.
func ReadRequestQuery(query map[string]string) (*RequestQuery, error) {
	if err := OnlyParameters(query, RequestParameters[:]); err != nil {
		return nil, err
	}
	q := &RequestQuery{Before: 1 << 53}
	limit, to := int64(50), q.Before
	for _, p := range [...]struct {
		name string
		to   *int64
		most int64
	}{{"limit", &limit, MaxRequestsPage}, {"before", &q.Before, to}, {"after", &q.After, to}, {"from", &q.from, to},
		{"to", &to, to}} {
		if v := query[p.name]; v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > p.most {
				return nil, apierr.Invalid(p.name, "%s must be an integer from 1 to %d.", p.name, p.most)
			}
			*p.to = n
		}
	}
	q.limit = int(limit)
	i := slices.IndexFunc(requestOrders[:], func(o requestOrder) bool { return o.name == cmp.Or(query["sort"], "time") })
	if i < 0 {
		return nil, apierr.Invalid("sort", "sort must be time, duration, first_token, cost, status, key, model, connection or tag.")
	}
	q.order = requestOrders[i]
	switch query["order"] {
	case "", "desc":
	case "asc":
		q.ascending = true
	default:
		return nil, apierr.Invalid("order", "order must be desc or asc.")
	}
	if err := q.readCursor(query["cursor"]); err != nil {
		return nil, err
	}
	var err error
	q.Wanted, err = requestFilter(query, q.from, to)
	return q, err
}

// OnlyParameters refuses a query with other parameters than those of a route.
func OnlyParameters(query map[string]string, names []string) error {
	for name := range query {
		if !slices.Contains(names, name) {
			return apierr.Invalid(name, "This route has no query parameter %q. It has %s.", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// readCursor reads the cursor of a page: the number of its last request, and for an
// order that has one its value.
func (q *RequestQuery) readCursor(cursor string) error {
	if cursor == "" {
		return nil
	}
	seq, value, _ := strings.Cut(cursor, ".")
	k := requestKey{text: value}
	var err, failed error
	k.seq, err = strconv.ParseInt(seq, 10, 64)
	if q.order.number != nil {
		k.text = ""
		k.number, failed = strconv.ParseFloat(value, 64)
	}
	if err != nil || failed != nil || k.seq < 1 {
		return apierr.Invalid("cursor", "cursor must be the one of the page before, with the same sort and order.")
	}
	if q.past = &k; q.scansInOrder() {
		q.Before = min(q.Before, k.seq)
	}
	return nil
}

func (q *RequestQuery) keyOf(r *store.Request) requestKey {
	k := requestKey{seq: r.Seq}
	switch {
	case q.order.number != nil:
		k.number = q.order.number(r)
	case q.order.text != nil:
		k.text = q.order.text(r)
	}
	return k
}

// scansInOrder reports whether requests are scanned in the order of the query.
func (q *RequestQuery) scansInOrder() bool { return q.order.name == "time" && !q.ascending }

// compare returns a negative number if a comes before b.
func (q *RequestQuery) compare(a, b requestKey) int {
	if q.ascending {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(b.number, a.number), cmp.Compare(b.text, a.text), cmp.Compare(b.seq, a.seq))
}

// Add adds a request to a page if it is one of the first, and reports whether another
// one can still be.
func (q *RequestQuery) Add(p *RequestPage, r *store.Request) (more bool) {
	k := q.keyOf(r)
	if q.past != nil && q.compare(*q.past, k) >= 0 {
		return true
	}
	if len(p.Data) == q.limit && q.compare(q.keyOf(&p.Data[q.limit-1]), k) < 0 {
		p.More = true
		return !q.scansInOrder()
	}
	at := sort.Search(len(p.Data), func(i int) bool { return q.compare(q.keyOf(&p.Data[i]), k) > 0 })
	p.Data = slices.Insert(p.Data, at, *r)
	if len(p.Data) > q.limit {
		p.Data, p.More = p.Data[:q.limit], true
	}
	return true
}

// End sets the cursor of a page.
func (q *RequestQuery) End(p *RequestPage) {
	if !p.More || len(p.Data) == 0 {
		return
	}
	k := q.keyOf(&p.Data[len(p.Data)-1])
	p.Cursor = strconv.FormatInt(k.seq, 10)
	switch {
	case q.order.number != nil:
		p.Cursor += "." + strconv.FormatFloat(k.number, 'g', -1, 64)
	case q.order.text != nil:
		p.Cursor += "." + k.text
	}
}

// MayBeFollowed reports whether a request that is older than r may have come in after
// from. Requests are numbered within an hour of their end, unless the object could not
// be reached for long.
func (q *RequestQuery) MayBeFollowed(r *store.Request) bool {
	return r.At+r.LatencyMs >= q.from-time.Hour.Milliseconds()
}

// requestFilter returns the condition that the query sets.
func requestFilter(query map[string]string, from, to int64) (func(r *store.Request) bool, error) {
	failed := query["failed"]
	for _, p := range [...]struct {
		name   string
		values []string
	}{
		{"failed", []string{"true", "false"}},
		{"outcome", []string{store.Succeeded, store.ProviderFailed, store.NoAccount, store.Refused, store.Left}},
		{"reason", []string{store.RefusedByKeyLimit, store.RefusedByBudget, store.RefusedByConcurrency,
			store.RefusedByKey, store.RefusedByModel, store.RefusedByRequest}},
	} {
		if v := query[p.name]; v != "" && !slices.Contains(p.values, v) {
			last := len(p.values) - 1
			return nil, apierr.Invalid(p.name, "%s must be %s or %s.", p.name, strings.Join(p.values[:last], ", "),
				p.values[last])
		}
	}
	status, err := statusFilter(query["status"])
	if err != nil {
		return nil, err
	}
	var least [3]float64
	for i, name := range [...]string{"minDurationMs", "minFirstTokenMs", "minCostUsd"} {
		if v := query[name]; v != "" {
			if least[i], err = strconv.ParseFloat(v, 64); err != nil || !(least[i] >= 0) {
				return nil, apierr.Invalid(name, "%s must be a number that is not negative.", name)
			}
		}
	}
	text := strings.ToLower(strings.TrimSpace(query["q"]))
	key, endpoint, code := query["key"], query["endpoint"], query["code"]
	outcome, reason, tag, tool := query["outcome"], query["reason"], query["tag"], query["tool"]
	connection, provider, model := query["connection"], query["provider"], query["model"]
	return func(r *store.Request) bool {
		if r.At < from || r.At > to || !status(r) || key != "" && r.KeyID != key || endpoint != "" &&
			r.Endpoint != endpoint ||
			tag != "" && !slices.Contains(r.Tags, tag) || tool != "" && r.Tool != tool ||
			outcome != "" && r.Outcome != outcome || reason != "" && r.Reason != reason ||
			float64(r.LatencyMs) < least[0] || float64(r.FirstMs) < least[1] || r.CostUSD < least[2] {
			return false
		}
		tried := func(want, last string, of func(a *store.Attempt) string) bool {
			if want == "" || want == last {
				return true
			}
			for i := range r.Failed {
				if of(&r.Failed[i]) == want {
					return true
				}
			}
			return false
		}
		bad := r.HasFailed() || len(r.Failed) > 0
		return (failed == "" || bad == (failed == "true")) &&
			tried(connection, r.ConnectionID, func(a *store.Attempt) string { return a.ConnectionID }) &&
			tried(provider, r.Provider, func(a *store.Attempt) string { return a.Provider }) &&
			tried(code, r.Error, func(a *store.Attempt) string { return a.Code }) &&
			(model == r.Asked || tried(model, r.Model, func(a *store.Attempt) string { return a.Model })) &&
			(text == "" || requestHas(r, text))
	}, nil
}

// statusFilter reads the filter "status".
func statusFilter(want string) (func(r *store.Request) bool, error) {
	n, err := strconv.Atoi(want)
	switch {
	case want == "":
		return func(*store.Request) bool { return true }, nil
	case want == "client_left":
		return (*store.Request).Left, nil
	case want == "error":
		return (*store.Request).HasFailed, nil
	case len(want) == 3 && want[0] >= '1' && want[0] <= '9' && want[1:] == "xx":
		return func(r *store.Request) bool { return r.Status/100 == int(want[0]-'0') }, nil
	case err == nil && n >= 100 && n <= 999:
		return func(r *store.Request) bool { return r.Status == n }, nil
	}
	return nil, apierr.Invalid("status", "status must be a status such as 429, a class such as 4xx, error or client_left.")
}

// requestHas reports whether a request contains a lower-case text.
func requestHas(r *store.Request, text string) bool {
	for _, s := range [...]string{r.ID, r.Asked, r.Model, r.Endpoint, r.Provider, r.Error} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	for _, s := range r.Tags {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	for i := range r.Failed {
		f := &r.Failed[i]
		for _, s := range [...]string{f.Model, f.Provider, f.Code, f.Text} {
			if strings.Contains(strings.ToLower(s), text) {
				return true
			}
		}
	}
	return false
}
