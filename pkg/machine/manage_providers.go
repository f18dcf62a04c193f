package machine

import (
	"encoding/json"

	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// connView is a connection as it is shown: no secret, only whether there is
// one and, of long ones, its last four characters.
type connView struct {
	ID              string                     `json:"id"`
	Provider        string                     `json:"provider"`
	Name            string                     `json:"name,omitempty"`
	AuthType        string                     `json:"authType"`
	HasKey          bool                       `json:"hasKey"`
	Last4           string                     `json:"last4,omitempty"`
	Secrets         []string                   `json:"secrets"` // the names of those that are set
	ExpiresAt       int64                      `json:"expiresAt,omitempty"`
	Priority        int                        `json:"priority"`
	IsActive        bool                       `json:"isActive"`
	Data            map[string]json.RawMessage `json:"providerSpecificData"`
	CreatedAt       int64                      `json:"createdAt"`
	UpdatedAt       int64                      `json:"updatedAt"`
	Generation      int64                      `json:"generation"`
	TokenGeneration int64                      `json:"tokenGeneration"`
	Status          string                     `json:"status"` // active, inactive, needs_credential, needs_reauth, cooling
	Health          string                     `json:"health"` // ready, untested, key_refused, out_of_credit, limited, unreachable, failing
	HealthAt        int64                      `json:"healthAt,omitempty"`
	LastSuccessAt   int64                      `json:"lastSuccessAt,omitempty"`
	LastError       string                     `json:"lastError,omitempty"`
	CooldownUntil   int64                      `json:"cooldownUntil,omitempty"`
}

// view shows a connection. cools are the machine's cooldowns.
func (t *tx) view(c *connRow, cools []store.Cooldown) connView {
	v := connView{
		ID: c.ID, Provider: c.Provider, Name: c.Name, AuthType: c.AuthType, HasKey: hasCredential(c.Secrets), Secrets: sortedKeys(c.Secrets),
		ExpiresAt: c.ExpiresAt, Priority: c.Priority, IsActive: !c.Inactive, Data: map[string]json.RawMessage{},
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Generation: c.Generation, TokenGeneration: c.TokenGeneration,
		LastError: t.lastError(c),
	}
	for _, f := range [...]string{store.APIKey, store.AccessKeyID, store.SecretAccessKey, store.RefreshToken, store.AccessToken} {
		if v.Last4 == "" {
			v.Last4 = c.Last4[f]
		}
	}
	for k, raw := range c.Data.Other {
		v.Data[k] = raw
	}
	for k, s := range c.Data.Vars {
		v.Data[k] = jsonOf(s)
	}
	if c.Data.BaseURL != "" {
		v.Data["baseUrl"] = jsonOf(c.Data.BaseURL)
	}
	if c.Data.Prefix != "" {
		v.Data["prefix"] = jsonOf(c.Data.Prefix)
	}
	if c.Data.Proxy != "" {
		v.Data["proxyUrl"] = jsonOf("http://" + c.Data.Proxy)
	}
	if c.Data.EnabledModels != nil {
		v.Data["enabledModels"] = jsonOf(c.Data.EnabledModels)
	}
	for _, cool := range cools {
		if cool.ConnectionID == c.ID && cool.Until > t.now {
			v.CooldownUntil = max(v.CooldownUntil, cool.Until)
		}
	}
	var known healthRow
	v.Health, known = t.health(c, cools)
	v.HealthAt, v.LastSuccessAt = known.At, known.SucceedAt
	switch {
	case c.Status != "":
		v.Status = c.Status
	case c.Inactive:
		v.Status = "inactive"
	case v.CooldownUntil > 0:
		v.Status = "cooling"
	default:
		v.Status = "active"
	}
	return v
}

func (c *change) providerList() (any, error) {
	out := struct {
		Object string     `json:"object"`
		Data   []connView `json:"data"`
	}{"list", []connView{}}
	cools := c.cooldowns()
	for _, row := range c.conns() {
		if p := c.query("provider"); p != "" && p != row.Provider {
			continue
		}
		out.Data = append(out.Data, c.view(&row, cools))
	}
	c.etag = c.changed("providers")
	return out, nil
}

// conn loads the connection that the call names.
func (c *change) conn() (row connRow, err error) {
	id := c.param()
	if !rpc.IsRowID(id) || !c.load(connPrefix+id, &row) {
		return row, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	c.target = id
	return row, nil
}

func (c *change) providerGet() (any, error) {
	row, err := c.conn()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return c.view(&row, c.cooldowns()), nil
}

func (c *change) providerCreate() (any, error) {
	in := c.input()
	in.only(connFields...)
	if err := c.match(c.changed("providers")); err != nil {
		return nil, err
	}
	if in.err == nil && len(c.list(connPrefix)) >= maxConns {
		return nil, apierr.New(409, "too_many", "a machine has at most %d connections", maxConns)
	}
	got := c.o.applyConnection(in, connRow{}, false)
	if in.err == nil {
		checkBase(in, &got.row.Connection)
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	id, err := rpc.NewID(c.o.Rand, 20)
	if err != nil {
		return nil, err
	}
	got.row.ID, c.target, c.fields = id, id, in.names
	return c.store(&got, 201)
}

func (c *change) providerUpdate() (any, error) {
	row, err := c.conn()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	in := c.input()
	in.only(connFields...)
	got := c.o.applyConnection(in, row, false)
	if in.err == nil {
		checkBase(in, &got.row.Connection)
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.fields = in.names
	return c.store(&got, 200)
}

// checkBase refuses a connection whose calls could not be addressed.
func checkBase(in *input, c *store.Connection) {
	d := provider.Lookup(c.Provider)
	switch {
	case d == nil:
	case d.Compatible && c.Data.BaseURL == "":
		in.fail("providerSpecificData.baseUrl", "is required for this provider")
	case !d.Compatible && !d.Rebase && c.Data.BaseURL != "":
		in.fail("providerSpecificData.baseUrl", "cannot be set for this provider")
	}
}

func (c *change) store(got *connInput, status int) (any, error) {
	if err := c.o.finishConnection(c.tx, got); err != nil {
		return nil, err
	}
	c.status, c.etag = status, got.row.Generation
	return c.view(&got.row, c.cooldowns()), nil
}

func (c *change) providerDelete() (any, error) {
	row, err := c.conn()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	c.touch("providers")
	c.del(connPrefix + row.ID)
	c.del(intentPrefix + row.ID)
	c.del(errorPrefix + row.ID)
	c.forgetRefusals(row.ID)
	c.del(healthPrefix + row.ID)
	c.clearCooldowns(row.ID)
	c.due, c.status = true, 204
	return nil, nil
}

// probeMost is the number of connection tests a minute
// (docs/reference/reliability.md, T18).
const probeMost = 10

// probe admits a connection test, and gives the machine as the test needs it.
//
//	probe {connectionId} → 200 store.Machine; 404; 429
func (o *Object) probe(r *request) (any, error) {
	var c struct {
		ID string `json:"connectionId"`
	}
	var row connRow
	if !r.exists() {
		return nil, errGone()
	}
	if json.Unmarshal(r.body, &c) != nil || !rpc.IsRowID(c.ID) || !r.load(connPrefix+c.ID, &row) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	minute := r.now / minuteMs
	if r.meta.ProbeAt != minute {
		r.meta.ProbeAt, r.meta.Probes = minute, 0
	}
	if r.meta.Probes++; r.meta.Probes > probeMost {
		e := apierr.New(429, "rate_limit_exceeded", "at most %d connection tests a minute", probeMost)
		e.RetryAfter = msec((minute+1)*minuteMs - r.now)
		return nil, e
	}
	return r.replica(), nil
}
