package manage

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/setup"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// MaxBudgets is the number of budgets of a machine.
const MaxBudgets = 100

// Bounds of limits.
const (
	maxDollars = 1e6
	maxCounted = 1_000_000_000_000_000 // tokens or requests
)

// budgetView is a budget as it is shown. Amounts are US dollars, tokens or requests.
type budgetView struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	KeyID      string   `json:"keyId,omitempty"`
	Models     []string `json:"models,omitempty"`
	Tag        string   `json:"tag,omitempty"`
	Tool       string   `json:"tool,omitempty"`
	Unit       string   `json:"unit"`
	Limit      float64  `json:"limit"`
	Window     string   `json:"window"`
	Unpriced   string   `json:"unpriced,omitempty"` // pass or refuse, for usd
	Webhook    string   `json:"webhookUrl,omitempty"`
	Secret     string   `json:"webhookSecret,omitempty"` // signs alerts; not in the list
	CreatedAt  int64    `json:"createdAt"`
	UpdatedAt  int64    `json:"updatedAt"`
	Generation int64    `json:"generation"`

	Spent    float64 `json:"spent"`
	Reserved float64 `json:"reserved"` // by calls under way, and lent to instances of the gateway
	// StartedAt and ResetsAt are the window's. Both are missing before its first call.
	StartedAt     int64 `json:"startedAt,omitempty"`
	ResetsAt      int64 `json:"resetsAt,omitempty"`
	UnpricedCalls int64 `json:"unpricedCalls,omitempty"` // not in Spent
	// Exhausted reports that the limit is spent in this window, or nearly, so that a call was
	// refused.
	Exhausted bool `json:"exhausted,omitempty"`
}

func (c *change) viewBudget(b *storage.Budget) budgetView {
	l := c.Ledger(&b.Budget, c.o.Zone(c.Tx))
	v := budgetView{
		ID: b.ID, Name: b.Name, KeyID: b.KeyID, Models: b.Models, Tag: b.Tag, Tool: b.Tool, Unit: b.Unit,
		Limit: store.ShownAmount(b.Unit, b.Limit), Window: b.Window,
		Webhook: b.Webhook, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt, Generation: b.Generation,
		Spent: store.ShownAmount(b.Unit, l.Spent), Reserved: store.ShownAmount(b.Unit, l.Out(c.Now)),
		StartedAt: l.Start, ResetsAt: l.End, UnpricedCalls: l.Unpriced, Exhausted: l.Refused || l.Open && l.Spent >= b.Limit,
	}
	if c.belowOwner() {
		v.Webhook = ""
	}
	if b.Unit == store.USD {
		if v.Unpriced = "pass"; b.RefuseUnpriced {
			v.Unpriced = "refuse"
		}
	}
	return v
}

// showBudget is viewBudget with the key that alerts are signed with.
func (c *change) showBudget(b *storage.Budget) budgetView {
	v := c.viewBudget(b)
	if b.Webhook != "" && !c.belowOwner() {
		v.Secret = c.o.webhookSecret(c.ID, b.ID)
	}
	return v
}

// budgetList answers GET /api/budgets, for a member with their own budget alone.
func (c *change) budgetList() (any, error) {
	rows := c.Budgets()
	if p := c.member(); p != nil {
		rows = slices.DeleteFunc(rows, func(b storage.Budget) bool { return b.Tag != tagOf(p.ID) })
		if len(rows) == 0 && p.Template != nil { // the first key will store it
			if b, is := personBudget(c.Tx, p.ID, p.Name, p.Template); is {
				rows = append(rows, b)
			}
		}
	}
	return listOf(c, "budgets", rows, c.viewBudget)
}

func (c *change) budget() (row storage.Budget, err error) {
	return recordOf[storage.Budget](c, storage.BudgetPrefix,
		apierr.New(404, "budget_not_found", "No budget has this id. GET /api/budgets lists the budgets."))
}

func (c *change) budgetGet() (any, error) {
	row, err := c.budget()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return c.showBudget(&row), nil
}

func (c *change) budgetCreate() (any, error) {
	if err := c.match(c.changed("budgets")); err != nil {
		return nil, err
	}
	if len(c.List(storage.BudgetPrefix)) >= MaxBudgets {
		return nil, apierr.New(409, "too_many", "A machine has at most %d budgets.", MaxBudgets)
	}
	var row storage.Budget
	if err := c.applyBudget(&row); err != nil {
		return nil, err
	}
	id, err := rpc.NewID(c.o.Rand, 20)
	if err != nil {
		return nil, err
	}
	row.ID, row.CreatedAt, c.target, c.status = id, c.Now, id, 201
	return c.storeBudget(&row)
}

func (c *change) budgetUpdate() (any, error) {
	row, err := c.budget()
	if err == nil {
		err = c.match(row.Generation)
	}
	if err == nil {
		err = c.applyBudget(&row)
	}
	if err != nil {
		return nil, err
	}
	return c.storeBudget(&row)
}

func (c *change) storeBudget(row *storage.Budget) (any, error) {
	c.putBudget(row)
	c.etag = row.Generation
	return c.showBudget(row), nil
}

// putBudget stores a created or changed budget of the API.
func (c *change) putBudget(row *storage.Budget) {
	if before := putBudget(c.Tx, row); row.Webhook != before.Webhook {
		c.Enable(storage.OfBudget(row.ID))
	}
}

// putBudget stores a created or changed budget, and returns what it was. If the limit has
// changed, it is not used up any more, and alerts are sent again.
func putBudget(t *storage.Tx, row *storage.Budget) (before storage.Budget) {
	t.Load(storage.BudgetPrefix+row.ID, &before)
	row.UpdatedAt = t.Now
	t.PutBudget(row)
	var l budget.Ledger
	if row.Limit != before.Limit && t.Load(storage.LedgerPrefix+row.ID, &l) {
		l.Refused, l.Alerted = false, 0
		t.Put(storage.LedgerPrefix+row.ID, l)
	}
	return before
}

func (c *change) budgetDelete() (any, error) {
	row, err := c.budget()
	if err == nil {
		err = c.match(row.Generation)
	}
	if err != nil {
		return nil, err
	}
	c.deleteBudget(row.ID)
	c.status = 204
	return nil, nil
}

func (c *change) deleteBudget(id string) {
	c.Touch("budgets")
	c.Del(storage.BudgetPrefix + id)
	c.Del(storage.LedgerPrefix + id)
	c.DropOutbox(storage.OfBudget(id))
}

// applyBudget changes a budget by the fields of the body. The unit and the window stay
// as they were created: what was counted has them.
func (c *change) applyBudget(row *storage.Budget) error {
	in := c.input()
	in.only("name", "keyId", "models", "tag", "tool", "unit", "limit", "window", "unpriced", "webhookUrl", "allowUnknown")
	c.readBudget(in, row, row.ID != "")
	if _, found := c.Get(storage.KeyPrefix + row.KeyID); row.KeyID != "" && !found {
		in.fail("keyId", "is not the id of a key")
	}
	c.fields = in.names
	return in.failed()
}

// readBudget reads the fields of a budget that were sent. The unit and the window of a
// stored one cannot be changed.
func (c *change) readBudget(in *Input, row *storage.Budget, stored bool) {
	if v, ok := in.text("name", 100); ok || !stored {
		if v == "" {
			in.fail("name", "must not be empty")
		}
		row.Name = v
	}
	if v, ok := in.text("keyId", 64); ok {
		if v != "" && !rpc.IsRowID(v) {
			in.fail("keyId", "is not the id of a key")
		}
		row.KeyID = v
	}
	if v, ok := c.allowedModels(in, 100); ok {
		row.Models = v
	}
	if v, ok := in.text("tag", store.MaxTag); ok {
		if name, value, _ := strings.Cut(v, "="); v != "" && (name == "" || value == "" || strings.Contains(v, ",")) {
			in.fail("tag", "must be name=value")
		}
		row.Tag = v
	}
	if v, ok := in.text("tool", store.MaxTag); ok {
		if v != "" && !setup.IsTool(v) {
			in.fail("tool", "is not the id of a tool, such as claude-code")
		}
		row.Tool = v
	}
	oneOf := func(name string, to *string, values []string) {
		v, ok := in.text(name, 40)
		switch {
		case stored && (!ok || v == *to):
		case stored:
			in.fail(name, "cannot change; create another budget")
		case !slices.Contains(values, v):
			in.fail(name, "must be one of %s", strings.Join(values, ", "))
		default:
			*to = v
		}
	}
	oneOf("unit", &row.Unit, []string{store.USD, store.Tokens, store.Requests})
	oneOf("window", &row.Window, budget.Windows())
	if v, ok := in.text("unpriced", 10); ok {
		if v != "" && v != "pass" && v != "refuse" || v != "" && row.Unit != store.USD {
			in.fail("unpriced", "must be pass or refuse, for a budget in usd")
		}
		row.RefuseUnpriced = v == "refuse"
	}
	if v, ok := in.values["limit"]; ok || !stored {
		row.Limit = readLimit(in, v, row.Unit)
	}
	if v, ok := c.o.webhook(in, "webhookUrl"); ok {
		if c.belowOwner() && v != row.Webhook {
			in.fail("webhookUrl", "can be set by an owner of the machine alone")
		}
		row.Webhook = v
	}
}

// readLimit reads a limit: dollars, or a number of tokens or requests.
func readLimit(in *Input, v gjson.Result, unit string) int64 {
	if unit == store.USD {
		if v.Type != gjson.Number || !(v.Num*store.NanoDollars >= 1) || v.Num > maxDollars {
			in.fail("limit", "must be a number of US dollars up to %.0f", float64(maxDollars))
			return 0
		}
		return int64(math.Round(v.Num * store.NanoDollars))
	}
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if v.Type != gjson.Number || err != nil || n < 1 || n > maxCounted {
		in.fail("limit", "must be an integer from 1 to %d", maxCounted)
	}
	return n
}
