package manage

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/budget"
	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// keyView is a gateway key as it is shown.
type keyView struct {
	ID            string   `json:"id"`
	APIKey        string   `json:"apiKey,omitempty"` // once, at its creation or rotation
	Name          string   `json:"name"`
	Person        string   `json:"person,omitempty"` // who has it
	Last4         string   `json:"last4,omitempty"`
	Scopes        []string `json:"scopes"`
	Models        []string `json:"models,omitempty"`
	RPM           int      `json:"rpm,omitempty"`
	DailyMax      int      `json:"dailyMax,omitempty"`
	TPM           int      `json:"tpm,omitempty"`
	MaxParallel   int      `json:"maxParallel,omitempty"`
	Tags          []string `json:"tags,omitempty"` // of each of its calls
	RequestsToday int64    `json:"requestsToday"`  // of the UTC day; with dailyMax those that count against it
	CreatedAt     int64    `json:"createdAt"`
	ExpiresAt     int64    `json:"expiresAt,omitempty"`
	PausedAt      int64    `json:"pausedAt,omitempty"`
	LimitedUntil  int64    `json:"limitedUntil,omitempty"`
	// CapturePercent and CaptureHours are those of the settings if they are not set.
	CapturePercent *int `json:"capturePercent,omitempty"`
	CaptureHours   int  `json:"captureHours,omitempty"`
	// Earlier is the text that a rotation has replaced, while it is valid.
	Earlier *earlierView `json:"earlier,omitempty"`
	IDInKey bool         `json:"idInKey,omitempty"` // see rpc.NamesKey
	Invalid bool         `json:"invalid,omitempty"` // see dead
	keyUse
	Generation int64 `json:"generation"`
}

type earlierView struct {
	Last4 string `json:"last4,omitempty"`
	Until int64  `json:"until"`
}

// keyUse is what a key was used for, since its creation unless its name says more.
type keyUse struct {
	LastUsedAt       int64   `json:"lastUsedAt,omitempty"`
	Requests         int64   `json:"requests"`
	Refused          int64   `json:"refused"`         // of Requests, by the gateway
	RequestsLastDay  int64   `json:"requestsLastDay"` // of the last 24 hours
	Tokens           int64   `json:"tokens"`
	SpentUSD         float64 `json:"spentUsd"`
	SpentTodayUSD    float64 `json:"spentTodayUsd"` // of the UTC day
	SpentMonthUSD    float64 `json:"spentMonthUsd"` // of the UTC month
	UnpricedAttempts int64   `json:"unpricedAttempts,omitempty"`
}

func useOf(t *storage.Tx, id string) keyUse {
	u := t.KeyUse(id)
	return keyUse{
		LastUsedAt: u.LastAt, Requests: u.Requests, Refused: u.Refused, RequestsLastDay: u.InDay(), Tokens: u.Tokens,
		SpentUSD: store.Dollars(u.CostUSD), SpentTodayUSD: store.Dollars(u.DayUSD), SpentMonthUSD: store.Dollars(u.MonthUSD),
		UnpricedAttempts: u.Unpriced,
	}
}

func (c *change) viewKey(k *storage.Key) keyView {
	v := keyView{
		ID: k.ID, Name: shownName(k), Last4: k.Last4, Scopes: k.Scopes, Models: k.Models, RPM: k.RPM, DailyMax: k.DailyMax,
		TPM: k.TPM, MaxParallel: k.MaxParallel, Tags: k.Tags, Person: k.Person,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, PausedAt: k.PausedAt, CapturePercent: k.CapturePercent,
		CaptureHours: k.CaptureHours, keyUse: useOf(c.Tx, k.ID), Generation: k.Generation,
		IDInKey: rpc.NamesKey(&k.Key, c.o.KeySecret, c.ID), Invalid: c.o.dead(k),
	}
	if len(v.Scopes) == 0 {
		v.Scopes = []string{"data"}
	}
	if e := k.Earlier; e != nil && e.Until > c.Now {
		v.Earlier = &earlierView{e.Last4, e.Until}
	}
	use := c.KeyUse(k.ID)
	v.RequestsToday = use.Today()
	for _, l := range c.KeyLimits(k) {
		if l.Used >= l.Limit {
			v.LimitedUntil = max(v.LimitedUntil, l.End)
		}
		if l.Unit == store.Requests && l.Window == budget.Day {
			v.RequestsToday = l.Used
		}
	}
	return v
}

func (c *change) keyList() (any, error) {
	return listOf(c, "keys", c.ownKeys(), c.viewKey)
}

func (c *change) key() (row storage.Key, err error) {
	missing := apierr.New(404, "key_not_found", "No key has this id. GET /api/keys lists the keys.")
	row, err = recordOf[storage.Key](c, storage.KeyPrefix, missing)
	if err == nil && !c.isOwn(row.ID) {
		return storage.Key{}, missing
	}
	c.target = c.o.MaskedKey(c.target)
	return row, err
}

func (c *change) keyGet() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return c.viewKey(&row), nil
}

// keyFields are the fields of a key that can be set.
var keyFields = [...]string{"name", "scopes", "expiresAt", "models", "rpm", "dailyMax", "tpm", "maxParallel",
	"tags", "capturePercent", "captureHours", "allowUnknown"}

// readKey reads the fields of a key that were sent.
func (c *change) readKey(in *Input, row *storage.Key) {
	if name, ok := in.text("name", 200); ok {
		row.Name = name
	}
	if _, ok := in.values["scopes"]; ok {
		row.Scopes = readScopes(in)
	}
	if models, ok := c.allowedModels(in, 500); ok {
		row.Models = models
	}
	if rpm, ok := in.int("rpm", 0, 1_000_000); ok {
		row.RPM = int(rpm)
	}
	if daily, ok := in.int("dailyMax", 0, 1_000_000_000); ok {
		row.DailyMax = int(daily)
	}
	if tpm, ok := in.int("tpm", 0, 1_000_000_000); ok {
		row.TPM = int(tpm)
	}
	if calls, ok := in.int("maxParallel", 0, store.MaxCalls); ok {
		row.MaxParallel = int(calls)
	}
	if tags, ok := in.texts("tags", store.MaxTags, store.MaxTag); ok {
		row.Tags = checkTags(in, tags)
	}
	readCapture(in, &row.Key)
	if at, ok := in.time("expiresAt"); ok {
		if at != 0 && at <= c.Now {
			in.fail("expiresAt", "has passed already")
		}
		row.ExpiresAt = at
	}
	if row.Name == "" {
		row.Name = freeName(unnamedKey, takenNames(c.Keys(), keyName))
	}
}

// unnamedKey is the name of a key that is given none, numbered after the first one.
const unnamedKey = "API key"

func keyName(k *storage.Key) string { return k.Name }

// shownName returns what lists call a key. Those of imports, seed documents and earlier versions may
// have no name.
func shownName(k *storage.Key) string {
	switch {
	case k.Name != "":
		return k.Name
	case k.Last4 != "":
		return "…" + k.Last4
	}
	return unnamedKey
}

// checkTags returns the tags of a key.
func checkTags(in *Input, tags []string) []string {
	names := map[string]bool{}
	for i, tag := range tags {
		field := "tags[" + strconv.Itoa(i) + "]"
		switch name := store.TagName(tag); {
		case len(tag) > store.MaxTag || strings.Contains(tag, ",") || name == "":
			in.fail(field, "must be name=value or a name, without commas, of at most %d bytes", store.MaxTag)
		case names[name]:
			in.fail(field, "has another value of %s", name)
		default:
			names[name] = true
		}
	}
	return tags
}

// allowedModels reads the models that a key may call or that a budget covers, at most
// max: public ids, or beginnings that end in "*". They must exist unless allowUnknown
// is set.
func (c *change) allowedModels(in *Input, max int) (models []string, given bool) {
	unknown, _ := in.bool("allowUnknown")
	models, given = in.texts("models", max, maxModelName)
	for i, name := range models {
		models[i] = catalog.PlainName(name)
	}
	if in.Err == nil && !unknown && len(models) > 0 {
		known := namesOf(c.Tx)
		for i := 0; i < len(models) && in.Err == nil; i++ {
			known.CheckAllowed(in, models[i])
		}
	}
	return models, given
}

// keyCreate answers POST /api/keys. With the field budget the key has a budget of its own
// from the start:
//
//	"budget": {"limit","unit","window","name","models","unpriced","webhookUrl"}
//
// Without a name it has that of the key.
func (c *change) keyCreate() (any, error) {
	in := readObject(orEmpty(c.env.Body), "")
	in.only(append(keyFields[:], "budget")...)
	if c.member() != nil { // the template has the rest
		in.only("name", "expiresAt")
	}
	var row storage.Key
	c.readKey(in, &row)
	budgeted, err := c.budgetOfKey(in, row.Name)
	if err == nil {
		err = in.failed()
	}
	if err != nil {
		return nil, err
	}
	if err := c.mayGrant(row.Scopes); err != nil {
		return nil, err
	}
	if err := c.match(c.changed("keys")); err != nil {
		return nil, err
	}
	if len(c.List(storage.KeyPrefix)) >= MaxKeys {
		return nil, apierr.New(409, "too_many", "A machine has at most %d keys.", MaxKeys)
	}
	if err := own(c.Tx, c.maker, &row); err != nil {
		return nil, err
	}
	text, err := c.o.mint(&row, c.ID)
	if err != nil {
		return nil, err
	}
	row.CreatedAt = c.Now
	if budgeted != nil {
		budgeted.KeyID, budgeted.CreatedAt = row.ID, c.Now
		c.putBudget(budgeted)
	}
	c.target, c.fields, c.status = c.o.MaskedKey(row.ID), in.names, 201
	c.o.keyCreated(c.Tx, &row, c.actor)
	return c.putKey(&row, text), nil
}

// budgetOfKey reads the budget that a new key is to have; nil for none.
func (c *change) budgetOfKey(in *Input, ofKey string) (*storage.Budget, error) {
	v, given := in.values["budget"]
	if !given || v.Type == gjson.Null {
		return nil, nil
	}
	fields := sub(v, "budget")
	if fields.Err != nil {
		return nil, fields.Err
	}
	fields.only("name", "models", "unit", "limit", "window", "unpriced", "webhookUrl", "allowUnknown")
	if _, named := fields.values["name"]; !named {
		fields.values["name"] = gjson.Result{Type: gjson.String, Str: apierr.Shorten(ofKey, 100)}
	}
	var row storage.Budget
	c.readBudget(fields, &row, false)
	if err := fields.failed(); err != nil {
		return nil, err
	}
	if len(c.List(storage.BudgetPrefix)) >= MaxBudgets {
		return nil, apierr.New(409, "too_many", "A machine has at most %d budgets.", MaxBudgets)
	}
	id, err := rpc.NewID(c.o.Rand, 20)
	row.ID = id
	return &row, err
}

// putKey stores a changed key. text is the key itself if it is new, else "".
func (c *change) putKey(row *storage.Key, text string) keyView {
	c.PutKey(row)
	c.etag = row.Generation
	v := c.viewKey(row)
	v.APIKey = text
	return v
}

// keyUpdate answers PUT /api/keys/{id}: the fields that are sent are changed.
//
//	{"name","scopes","expiresAt","models","rpm","dailyMax","tpm","maxParallel","tags","capturePercent","captureHours","paused","allowUnknown"}
func (c *change) keyUpdate() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	in := c.input()
	in.only(append(keyFields[:], "paused")...)
	if c.member() != nil {
		in.only("name")
	}
	was := row.Key
	c.readKey(in, &row)
	paused, given := in.bool("paused")
	if err := in.failed(); err != nil {
		return nil, err
	}
	switch {
	case given && paused && row.PausedAt == 0:
		row.PausedAt = c.Now
	case given && !paused:
		row.PausedAt = 0
	}
	longer := was.ExpiresAt != 0 && (row.ExpiresAt == 0 || row.ExpiresAt > was.ExpiresAt)
	if longer || was.PausedAt != 0 && row.PausedAt == 0 || !slices.Equal(was.Scopes, row.Scopes) {
		if err := c.mayGrant(row.Scopes); err != nil {
			return nil, err
		}
	}
	c.fields = in.names
	c.switched("paused", was.PausedAt != 0, row.PausedAt != 0)
	return c.putKey(&row, ""), nil
}

// Times of a rotation, in seconds.
const (
	defaultOverlap = 24 * 3600
	maxOverlap     = 30 * 24 * 3600
)

// keyRotate answers POST /api/keys/{id}/rotate {"overlapSeconds"}: the key gets
// another text, which is shown once, and keeps everything else. The text it had is
// valid for another day by default; one from an earlier rotation ends at once.
func (c *change) keyRotate() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	in := readObject(orEmpty(c.env.Body), "")
	in.only("overlapSeconds")
	overlap, given := in.int("overlapSeconds", 0, maxOverlap)
	if !given {
		overlap = defaultOverlap
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if err := c.mayGrant(row.Scopes); err != nil {
		return nil, err
	}
	before := row
	text, err := c.o.mint(&row, c.ID)
	if err != nil {
		return nil, err
	}
	row.ID, row.Earlier = before.ID, nil
	if overlap > 0 {
		row.Earlier = &store.EarlierKey{Digest: before.Digest, Last4: before.Last4, Until: c.Now + overlap*1000}
	}
	c.fields = in.names
	return c.putKey(&row, text), nil
}

// keyUsage answers GET /api/keys/{id}/usage: as GET /api/usage, of one key.
func (c *change) keyUsage() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	report, err := c.usageOf(row.ID)
	if err != nil {
		return nil, err
	}
	return struct {
		*usageReport
		Key keyView `json:"key"`
	}{report, c.viewKey(&row)}, nil
}

// keyNetworks answers GET /api/keys/{id}/networks: those that the key was used from within 30
// days, the last one first.
//
//	200 {"object":"list","data":[store.KeyNetwork],"newToday":0}
func (c *change) keyNetworks() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	k := c.KeyNetworks(row.ID)
	slices.SortStableFunc(k.List, func(a, b store.KeyNetwork) int { return cmp.Compare(b.Last, a.Last) })
	return struct {
		Object   string             `json:"object"`
		Data     []store.KeyNetwork `json:"data"`
		NewToday int                `json:"newToday"`
	}{"list", append([]store.KeyNetwork{}, k.List...), k.New}, nil
}

// ownUsage is the answer to GET /v1/usage.
type ownUsage struct {
	Object    string   `json:"object"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Last4     string   `json:"last4,omitempty"`
	Models    []string `json:"models,omitempty"`
	CreatedAt int64    `json:"createdAt"`
	ExpiresAt int64    `json:"expiresAt,omitempty"`
	// MaxParallel is the number of calls that may be under way at a time.
	MaxParallel int        `json:"maxParallel,omitempty"`
	Limits      []ownLimit `json:"limits"`
	keyUse
}

// ownLimit is a limit of a key, or a budget that is its own.
type ownLimit struct {
	Unit      string   `json:"unit"` // requests, tokens, usd
	Window    string   `json:"window"`
	Models    []string `json:"models,omitempty"` // of a budget; none means all
	Limit     float64  `json:"limit"`
	Used      float64  `json:"used"`
	Remaining float64  `json:"remaining"`
	ResetAt   int64    `json:"resetAt,omitempty"` // Unix milliseconds; 0 for never
}

// OwnUsage answers the operation "key.usage": what a key may know of itself. Budgets
// that it shares with others are not shown.
func (o *Manager) OwnUsage(r *storage.Call) (any, error) {
	var q rpc.KeyUsageQuery
	var row storage.Key
	if json.Unmarshal(r.Body, &q) != nil || !r.Exists() || !rpc.IsRowID(q.KeyID) ||
		!r.Load(storage.KeyPrefix+q.KeyID, &row) {
		return nil, rpc.ErrInvalidKey()
	}
	out := ownUsage{
		"key.usage", row.ID, shownName(&row), row.Last4, row.Models, row.CreatedAt, row.ExpiresAt, row.MaxParallel, []ownLimit{},
		useOf(r.Tx, row.ID),
	}
	add := func(unit, window string, models []string, limit, used int64, resetAt int64) {
		out.Limits = append(out.Limits, ownLimit{
			unit, window, models, store.ShownAmount(unit, limit), store.ShownAmount(unit, used),
			store.ShownAmount(unit, max(limit-used, 0)), resetAt,
		})
	}
	for _, l := range r.KeyLimits(&row) {
		if l.Unit != store.Calls {
			add(l.Unit, l.Window, nil, l.Limit, l.Used, l.End)
		}
	}
	for _, b := range r.Budgets() {
		if b.KeyID != row.ID {
			continue
		}
		zone := o.Zone(r.Tx)
		l := r.Ledger(&b.Budget, zone)
		if !l.Open {
			_, l.End = budget.Window(b.Window, r.Now, zone)
		}
		add(b.Unit, b.Window, b.Models, b.Limit, l.Spent, l.End)
	}
	return out, nil
}

func (c *change) keyDelete() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	c.Touch("keys")
	for _, b := range c.Budgets() {
		if b.KeyID == row.ID {
			c.deleteBudget(b.ID)
		}
	}
	c.Del(storage.KeyPrefix + row.ID)
	c.Del(storage.KeyUsePrefix + row.ID)
	c.DropNetworks(row.ID)
	c.status = 204
	return nil, nil
}

// mint creates a key of a machine, sets its id and digest in a record, and returns its text.
func (o *Manager) mint(row *storage.Key, machineID string) (text string, err error) {
	text, k, err := rpc.MintKey(o.Rand, o.KeySecret, machineID)
	row.ID, row.Digest, row.Last4, row.Secret = k.ID, k.Digest, k.Last4, rpc.SecretCheck(o.KeySecret)
	return text, err
}

// dead reports whether calls with a key are refused because API_KEY_SECRET has changed.
func (o *Manager) dead(k *storage.Key) bool {
	now := rpc.SecretCheck(o.KeySecret)
	return k.Secret != "" && subtle.ConstantTimeCompare([]byte(k.Secret), []byte(now)) == 0
}

// MaxKeys is the number of keys of a machine.
const MaxKeys = 1000

// MaskedKey is how audit names a key (docs/reference/reliability.md, T34).
func (o *Manager) MaskedKey(id string) string {
	if id == "" {
		return ""
	}
	mac := hmac.New(sha256.New, o.KeySecret)
	mac.Write([]byte("audit:" + id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
