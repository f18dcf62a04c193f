package manage

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
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
	Weight          int                        `json:"weight"`
	IsActive        bool                       `json:"isActive"`
	Data            map[string]json.RawMessage `json:"providerSpecificData"`
	CreatedAt       int64                      `json:"createdAt"`
	UpdatedAt       int64                      `json:"updatedAt"`
	Generation      int64                      `json:"generation"`
	TokenGeneration int64                      `json:"tokenGeneration"`
	Status          string                     `json:"status"` // active, inactive, needs_credential, needs_reauth, cooling
	// ready, untested, key_refused, out_of_credit, limited, unreachable, failing, blocked, key_unavailable
	Health        string   `json:"health"`
	HealthSince   int64    `json:"healthSince,omitempty"`
	HealthAt      int64    `json:"healthAt,omitempty"`
	LastSuccessAt int64    `json:"lastSuccessAt,omitempty"`
	LastError     string   `json:"lastError,omitempty"`
	BlockedPlace  string   `json:"blockedPlace,omitempty"` // airport code, of health blocked
	CooldownUntil int64    `json:"cooldownUntil,omitempty"`
	LastHour      lastHour `json:"lastHour"`
	SpentTodayUSD float64  `json:"spentTodayUsd"`
	SpentMonthUSD float64  `json:"spentMonthUsd"`
	Unpriced      int64    `json:"unpricedAttempts,omitempty"` // of the month
}

// lastHour counts attempts with a provider.
type lastHour struct {
	Attempts int64 `json:"attempts"`
	Failed   int64 `json:"failedAttempts"`
}

// view shows a connection. cools are the machine's cooldowns.
func viewConnection(t *storage.Tx, c *storage.Connection, cools []store.Cooldown) connView {
	v := connView{
		ID: c.ID, Provider: c.Provider, Name: c.Name, AuthType: c.AuthType, HasKey: store.HasCredential(c.Secrets),
		Secrets:   SortedKeys(c.Secrets),
		ExpiresAt: c.ExpiresAt, Priority: c.Priority, Weight: c.Share(), IsActive: !c.Inactive,
		Data:      map[string]json.RawMessage{},
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Generation: c.Generation, TokenGeneration: c.TokenGeneration,
		LastError: t.LastError(c),
	}
	for _, f := range [...]string{store.APIKey, store.AccessKeyID, store.SecretAccessKey, store.RefreshToken,
		store.AccessToken} {
		v.Last4 = cmp.Or(v.Last4, c.Last4[f])
	}
	maps.Copy(v.Data, c.Data.Other)
	for k, s := range c.Data.Vars {
		v.Data[k] = storage.EncodeJSON(s)
	}
	if c.Data.BaseURL != "" {
		v.Data["baseUrl"] = storage.EncodeJSON(c.Data.BaseURL)
	}
	if c.Data.Prefix != "" {
		v.Data["prefix"] = storage.EncodeJSON(c.Data.Prefix)
	}
	if c.Data.Proxy != "" {
		v.Data["proxyUrl"] = storage.EncodeJSON("http://" + c.Data.Proxy)
	}
	if c.Data.EnabledModels != nil {
		v.Data["enabledModels"] = storage.EncodeJSON(c.Data.EnabledModels)
	}
	if c.Data.StreamUsage != nil {
		v.Data["streamUsage"] = storage.EncodeJSON(*c.Data.StreamUsage)
	}
	for _, cool := range cools {
		if cool.ConnectionID == c.ID && cool.Until > t.Now {
			v.CooldownUntil = max(v.CooldownUntil, cool.Until)
		}
	}
	var known storage.Health
	v.Health, known = t.Health(c, cools)
	v.HealthSince, v.HealthAt, v.LastSuccessAt = known.Since, known.At, known.SucceedAt
	if v.Health == storage.HealthBlocked {
		v.BlockedPlace = known.Place
	}
	use := t.ConnUse(c.ID)
	v.LastHour.Attempts, v.LastHour.Failed = use.InHour()
	v.SpentTodayUSD, v.SpentMonthUSD, v.Unpriced = store.Dollars(use.DayUSD), store.Dollars(use.MonthUSD), use.Unpriced
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
	rows, cools := c.Connections(), c.Cooldowns()
	if p := c.query("provider"); p != "" {
		rows = slices.DeleteFunc(rows, func(row storage.Connection) bool { return row.Provider != p })
	}
	return listOf(c, "providers", rows, func(row *storage.Connection) connView { return viewConnection(c.Tx, row, cools) })
}

// conn loads the connection that the call names.
func (c *change) conn() (row storage.Connection, err error) {
	return recordOf[storage.Connection](c, storage.ConnectionPrefix, rpc.ErrNoConnection())
}

func (c *change) providerGet() (any, error) {
	row, err := c.conn()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return viewConnection(c.Tx, &row, c.Cooldowns()), nil
}

func (c *change) providerCreate() (any, error) {
	in := c.input()
	in.only(connFields...)
	if err := c.match(c.changed("providers")); err != nil {
		return nil, err
	}
	if in.Err == nil && len(c.List(storage.ConnectionPrefix)) >= MaxConns {
		return nil, apierr.New(409, "too_many", "A machine has at most %d accounts.", MaxConns)
	}
	got := c.o.applyConnection(in, storage.Connection{}, false)
	if in.Err == nil {
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
	if err := checkModelNames(c.Tx, &got.row); err != nil {
		return nil, err
	}
	return c.store(&got, 201)
}

// freeName returns the name for a row that was given none: numbered if another row has it, in
// any case of its letters. The name is taken from then on. The command line and weir.yaml know
// connections and keys by name.
func freeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[strings.ToLower(free)]; n++ {
		free = name + " " + strconv.Itoa(n)
	}
	taken[strings.ToLower(free)] = true
	return free
}

// takenNames returns the names of rows, as freeName takes them.
func takenNames[T any](rows []T, nameOf func(*T) string) map[string]bool {
	taken := make(map[string]bool, len(rows))
	for i := range rows {
		taken[strings.ToLower(nameOf(&rows[i]))] = true
	}
	return taken
}

func connectionName(c *storage.Connection) string { return c.Name }

// nameConnections names connections that are about to be stored without a name: by the prefix or the
// name of the provider.
func nameConnections(t *storage.Tx, given ...*connInput) {
	if !slices.ContainsFunc(given, func(g *connInput) bool { return g.row.Name == "" }) {
		return
	}
	ids := map[string]bool{}
	for _, g := range given {
		ids[g.row.ID] = true
	}
	others := slices.DeleteFunc(t.Connections(), func(c storage.Connection) bool { return ids[c.ID] })
	taken := takenNames(others, connectionName)
	for _, g := range given {
		taken[strings.ToLower(g.row.Name)] = true
	}
	for _, g := range given {
		if g.row.Name == "" {
			name := g.row.Provider
			if d := provider.Lookup(name); d != nil {
				name = d.Name
			}
			g.row.Name = freeName(cmp.Or(g.row.Data.Prefix, name), taken)
		}
	}
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
	if in.Err == nil {
		checkBase(in, &got.row.Connection)
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.fields = in.names
	c.switched("isActive", row.Inactive, got.row.Inactive)
	if row.Inactive || row.Data.Prefix != got.row.Data.Prefix {
		if err := checkModelNames(c.Tx, &got.row); err != nil {
			return nil, err
		}
	}
	return c.store(&got, 200)
}

// checkModelNames refuses an active connection whose models would have the names of those of another provider's:
// calls of a name reach one provider alone, the first.
func checkModelNames(t *storage.Tx, row *storage.Connection) error {
	if row.Inactive {
		return nil
	}
	names := []string{row.Data.Prefix}
	if row.Data.Prefix == "" {
		names = modelNames(row)
	}
	for _, other := range t.Connections() {
		if other.Inactive || other.Provider == row.Provider {
			continue
		}
		for _, taken := range modelNames(&other) {
			if !slices.Contains(names, taken) {
				continue
			}
			e := apierr.New(409, "name_taken", "Models named %s/… are those of the account %s. Give this account another prefix, or change, pause or delete that one first. To swap two prefixes, give one account a third one in between.",
				taken, strconv.Quote(other.Name))
			e.Param = "providerSpecificData.prefix"
			return e
		}
	}
	return nil
}

// modelNames returns what stands before the slash in the names of a connection's models.
func modelNames(c *storage.Connection) (names []string) {
	if d := provider.Lookup(c.Provider); d != nil {
		names = []string{d.Alias, d.ID}
	}
	if p := strings.TrimSpace(c.Data.Prefix); p != "" {
		names = append(names, p)
	}
	return names
}

// checkBase refuses a connection whose calls could not be addressed.
func checkBase(in *Input, c *store.Connection) {
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
	nameConnections(c.Tx, got)
	if err := c.o.finishConnection(c.Tx, got); err != nil {
		return nil, err
	}
	c.status, c.etag = status, got.row.Generation
	return viewConnection(c.Tx, &got.row, c.Cooldowns()), nil
}

func (c *change) providerDelete() (any, error) {
	row, err := c.conn()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	c.DeleteConnection(&row)
	c.status = 204
	return nil, nil
}

// providerRestore undoes the deletion of a connection.
//
//	POST /api/providers/{id}/restore → the connection; 404 a minute after its deletion
func (c *change) providerRestore() (any, error) {
	id := c.param()
	if len(c.List(storage.ConnectionPrefix)) >= MaxConns {
		return nil, apierr.New(409, "too_many", "A machine has at most %d accounts.", MaxConns)
	}
	if !rpc.IsRowID(id) {
		return nil, errNotDeleted()
	}
	row, ok := c.RestoreConnection(id)
	if !ok {
		return nil, errNotDeleted()
	}
	c.target, c.etag = id, row.Generation
	return viewConnection(c.Tx, &row, c.Cooldowns()), nil
}

func errNotDeleted() error {
	return apierr.New(404, "connection_not_found", "No account with this id was deleted in the last minute.")
}
