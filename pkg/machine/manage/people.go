package manage

import (
	"cmp"
	"slices"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// ofMembers are the routes that a member may call. All but the set-up look at own records alone.
var ofMembers = [...]string{"GET /api/keys", "POST /api/keys", "GET /api/keys/{id}", "PUT /api/keys/{id}",
	"DELETE /api/keys/{id}", "POST /api/keys/{id}/rotate", "GET /api/keys/{id}/usage", "GET /api/keys/{id}/networks",
	"GET /api/budgets", "GET /api/usage", "GET /api/requests", "GET /api/requests/{id}", "POST /api/setup"}

// mayCall refuses a person who was removed after the roles were read, and a member on a route that
// is not one of members.
func (c *change) mayCall() error {
	var removedAt int64
	if c.Load(storage.RemovedPrefix+c.env.Person.ID, &removedAt) && c.env.Person.SeenAt <= removedAt {
		return rpc.ErrNoAccess()
	}
	if c.member() != nil && !slices.Contains(ofMembers[:], c.env.Method+" "+c.env.Route) {
		return rpc.ErrRole()
	}
	return nil
}

// member returns the person who calls if they see own records alone, else nil.
func (c *change) member() *rpc.Person {
	if p := c.env.Person; p != nil && !p.Role.AtLeast(people.Viewer) {
		return p
	}
	return nil
}

// belowOwner reports whether a person calls without the role owner on the machine.
func (c *change) belowOwner() bool { return c.env.Person != nil && c.env.Person.Role != people.Owner }

// isOwn reports whether the caller may see what a key has done.
func (c *change) isOwn(keyID string) bool {
	p := c.member()
	if p == nil {
		return true
	}
	if c.own == nil {
		c.own = map[string]bool{}
		for _, k := range c.Keys() {
			c.own[k.ID] = k.Person == p.ID
		}
	}
	return c.own[keyID]
}

// isOf reports whether a row of usage is wanted, and the caller's.
func (c *change) isOf(r, want *usage.Row) bool { return isOf(r, want) && c.isOwn(r.KeyID) }

// ownKeys returns the keys that the caller may see.
func (c *change) ownKeys() []storage.Key {
	return slices.DeleteFunc(c.Keys(), func(k storage.Key) bool { return !c.isOwn(k.ID) })
}

// tagOf returns the tag with the person of a key. It adds up usage and budgets.
func tagOf(person string) string { return store.PersonTag + "=" + person }

// own makes a new key that of the person who creates it, so that a removal pauses it. A member's
// has what the template says.
func own(t *storage.Tx, p *rpc.Person, row *storage.Key) error {
	if p == nil {
		return nil
	}
	row.Person = p.ID
	if p.Role != people.Member {
		if len(row.Tags) < store.MaxTags && !slices.ContainsFunc(row.Tags, isPersonTag) {
			row.Tags = append(row.Tags, tagOf(p.ID))
		}
		return nil
	}
	return byTemplate(t, p, row)
}

// makerOf returns the person who has a key that manages, nil for none: what it makes is theirs as well.
func makerOf(k *storage.Key) *rpc.Person {
	if k.Person == "" {
		return nil
	}
	return &rpc.Person{ID: k.Person, Role: people.Owner}
}

func isPersonTag(tag string) bool { return store.TagName(tag) == store.PersonTag }

// byTemplate sets what the template of a member says of a new key, and the member's budget.
func byTemplate(t *storage.Tx, p *rpc.Person, row *storage.Key) error {
	m, live := cmp.Or(p.Template, &people.Template{}), 0
	for _, k := range t.Keys() {
		if k.Person == p.ID && (k.ExpiresAt == 0 || k.ExpiresAt > t.Now) {
			live++
		}
	}
	if live >= m.MaxKeys() {
		return apierr.New(409, "too_many", "You have %d keys, which is the most. Revoke one that you no longer need.", live)
	}
	row.Tags = []string{tagOf(p.ID)}
	limitBy(m, row, t.Now)
	setPersonBudget(t, p.ID, p.Name, m)
	return nil
}

// limitBy sets the limits of a template on a key, whose days count from a time.
func limitBy(m *people.Template, row *storage.Key, from int64) {
	row.Models, row.RPM, row.DailyMax, row.TPM, row.MaxParallel = m.Models, m.RPM, m.DailyMax, m.TPM, m.MaxParallel
	if end := from + int64(m.Days)*storage.Day; m.Days > 0 && (row.ExpiresAt == 0 || row.ExpiresAt > end) {
		row.ExpiresAt = end
	}
}

// regrant applies another role or template to the keys that a person has: a member's get the
// limits, and those that manage the machine are paused for anyone but an owner.
func (c *change) regrant(id string, g people.Grant) {
	for _, k := range c.Keys() {
		if k.Person != id {
			continue
		}
		if g.Role == people.Member {
			limitBy(cmp.Or(g.Template, &people.Template{}), &k, c.Now)
		}
		if g.Role != people.Owner && k.PausedAt == 0 && slices.ContainsFunc(k.Scopes, manages) {
			k.PausedAt = c.Now
		}
		c.PutKey(&k)
	}
}

// manages reports whether a scope is one that only owners may grant.
func manages(scope string) bool { return scope == "manage" || scope == "export" }

// budgetOf returns the id of the budget of a person.
func budgetOf(person string) string { return storage.DigestOf(store.PersonTag, person)[:20] }

// setPersonBudget stores the budget of all keys of a person. It outlives the keys, so that a new
// one does not start over.
func setPersonBudget(t *storage.Tx, id, name string, m *people.Template) {
	if b, changed := personBudget(t, id, name, m); changed {
		putBudget(t, &b)
	}
}

// personBudget returns the budget of all keys of a person, and whether it is not the stored one.
func personBudget(t *storage.Tx, id, name string, m *people.Template) (b storage.Budget, changed bool) {
	limit := int64(m.BudgetUSD * store.NanoDollars)
	if limit <= 0 {
		return b, false
	}
	window, budgetID := cmp.Or(m.BudgetWindow, "month"), budgetOf(id)
	had := t.Load(storage.BudgetPrefix+budgetID, &b)
	if had && b.Limit == limit && b.Window == window {
		return b, false
	}
	if !had {
		b.ID, b.CreatedAt, b.Unit, b.Tag = budgetID, t.Now, store.USD, tagOf(id)
		b.Name = apierr.Shorten("Budget of "+cmp.Or(name, id), 100)
	}
	b.Limit, b.Window, b.UpdatedAt = limit, window, t.Now
	return b, true
}
