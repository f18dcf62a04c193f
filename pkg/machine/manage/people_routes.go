package manage

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/redact"
)

// The object checks, records and applies what concerns its machine of a change of people; the
// gateway then writes the registry, which has the people.

// maxMemberKeys is the most keys that a template can allow.
const maxMemberKeys = 100

// readRole reads the role and the template of a member.
func readRole(in *Input) (g people.Grant) {
	role, _ := in.text("role", 20)
	if g.Role = people.Role(role); !g.Role.Valid() {
		in.fail("role", "must be member, viewer, editor or owner")
	}
	v, given := in.values["template"]
	if !given || in.Err != nil {
		return g
	}
	if g.Role != people.Member {
		in.fail("template", "has the limits of members: other roles have none")
		return g
	}
	t, fields := &people.Template{}, sub(v, "template")
	if in.Err = fields.Err; in.Err != nil {
		return g
	}
	fields.only("keys", "models", "rpm", "dailyMax", "tpm", "maxParallel", "days", "budgetUsd", "budgetWindow")
	for _, f := range [...]struct {
		name string
		to   *int
		most int64
	}{{"keys", &t.Keys, maxMemberKeys}, {"rpm", &t.RPM, 1_000_000}, {"dailyMax", &t.DailyMax, 1_000_000_000},
		{"tpm", &t.TPM, 1_000_000_000}, {"maxParallel", &t.MaxParallel, 1_000_000}, {"days", &t.Days, 3650}} {
		n, _ := fields.int(f.name, 0, f.most)
		*f.to = int(n)
	}
	t.Models, _ = fields.texts("models", 500, maxModelName)
	if t.BudgetUSD = fields.values["budgetUsd"].Num; t.BudgetUSD < 0 || t.BudgetUSD > maxDollars {
		fields.fail("budgetUsd", "must be a number of dollars up to %d", int(maxDollars))
	}
	t.BudgetWindow, _ = fields.text("budgetWindow", 20)
	if t.BudgetWindow != "" && !slices.Contains(budget.Windows(), t.BudgetWindow) {
		fields.fail("budgetWindow", "must be a window of budgets, such as day or month")
	}
	fields.failed()
	in.Err, g.Template = fields.Err, t
	return g
}

func (c *change) personID() error {
	if c.target = c.param(); !people.IsID(c.target) {
		return apierr.New(404, "person_not_found", "No person of this machine has this id. GET /api/people lists them.")
	}
	return nil
}

// personUpdate is the object's part of PUT /api/people/{id} {"role","template"}.
func (c *change) personUpdate() (any, error) {
	if err := c.personID(); err != nil {
		return nil, err
	}
	in := c.input()
	in.only("role", "template")
	g := readRole(in)
	if err := in.failed(); err != nil {
		return nil, err
	}
	if c.env.Check {
		c.quiet = true
		return g, nil
	}
	name := ""
	if len(c.env.People) > 0 {
		name = c.env.People[0].Name
	}
	c.grant(c.target, name, g)
	c.fields = in.names
	return g, nil
}

// grant applies a role to what the machine has of a person. The name is that of a new budget.
func (c *change) grant(id, name string, g people.Grant) {
	if g.Role != people.Owner { // as after a removal: no call and no lease with the role of before counts
		c.Put(storage.RemovedPrefix+id, c.Now)
	}
	if g.Role == people.None {
		c.pauseKeys(id)
		return
	}
	c.regrant(id, g)
	if b := budgetOf(id); g.Template != nil && g.Template.BudgetUSD > 0 {
		setPersonBudget(c.Tx, id, name, g.Template)
	} else if c.Load(storage.BudgetPrefix+b, &storage.Budget{}) {
		c.deleteBudget(b)
	}
}

// pauseKeys pauses the keys of a person.
func (c *change) pauseKeys(id string) {
	for _, k := range c.Keys() {
		if k.Person == id && k.PausedAt == 0 {
			k.PausedAt = c.Now
			c.PutKey(&k)
		}
	}
}

// importedPeople reads the people of an encrypted document.
func (c *change) importedPeople(doc gjson.Result, opened bool) (grants []rpc.PersonGrant, err error) {
	if !opened {
		return nil, nil
	}
	for i, v := range doc.Get("people").Array() {
		in := sub(v, "document.people["+strconv.Itoa(i)+"]")
		var p rpc.PersonGrant
		if p.ID, _ = in.text("id", 40); !people.IsID(p.ID) {
			in.fail("id", "must be the id of a person")
		}
		if p.Issuer, _ = in.text("issuer", 500); p.Issuer == "" {
			in.fail("issuer", "must be a text")
		}
		p.Name, _ = in.text("name", 200)
		p.Email, _ = in.text("email", 200)
		if p.Role = people.None; in.values["role"].Str != string(people.None) {
			g := readRole(in)
			p.Role, p.Template = g.Role, g.Template
		}
		if in.Err != nil {
			return nil, in.Err
		}
		grants = append(grants, p)
	}
	return grants, nil
}

// personRemove is the object's part of DELETE /api/people/{id}: the keys of the person are paused,
// and calls are refused whose roles were read before.
func (c *change) personRemove() (any, error) {
	if err := c.personID(); err != nil {
		return nil, err
	}
	if len(c.env.People) > 0 {
		c.name = c.env.People[0].Name
	}
	c.grant(c.target, "", people.Grant{Role: people.None})
	c.status = 204
	return nil, nil
}

// inviteCreate is the object's part of POST /api/invitations
// {"role","template","note","person","signIn"}.
func (c *change) inviteCreate() (any, error) {
	in := c.input()
	in.only("role", "template", "note", "person", "signIn")
	var out rpc.InviteCreate
	if out.Person, _ = in.text("person", 40); out.Person == "" {
		g := readRole(in)
		out.Role, out.Template = g.Role, g.Template
	} else if !people.IsID(out.Person) {
		in.fail("person", "must be the id of a person")
	}
	out.Note, _ = in.text("note", 200)
	switch by, _ := in.text("signIn", 20); by {
	case "", "link":
	case "provider":
		out.Provider = true
	default:
		in.fail("signIn", "must be link or provider")
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if out.By = c.actor; c.maker != nil {
		out.By = "person:" + c.maker.ID
	}
	if c.target = out.Person; out.Person == "" {
		c.target = redact.Patterns(invited(out.Note, out.Role))
	}
	c.fields, c.status = in.names, 201
	return out, nil
}

// invited returns whom an invitation is for, and as what: "Ana (viewer)".
func invited(note string, role people.Role) string {
	if note == "" {
		return string(role)
	}
	return note + " (" + string(role) + ")"
}

// inviteDelete is the object's part of DELETE /api/invitations/{id}.
func (c *change) inviteDelete() (any, error) {
	c.target, c.status = c.param(), 204
	for _, p := range c.env.People {
		if p.ID != "" {
			c.target = p.ID
		} else {
			c.name = invited(p.Name, p.Role)
		}
	}
	return nil, nil
}
