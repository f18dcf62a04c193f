package manage

import (
	"encoding/json"
	"strconv"
	"strings"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

const (
	maxAuditScan = 2000 // records that one call reads
	maxAuditIDs  = 50   // whose records one call asks for
)

// auditPage is the answer to GET /api/audit.
type auditPage struct {
	Object string            `json:"object"`
	Data   []json.RawMessage `json:"data"`
	// Names are those of the machine and of the keys, connections, combos, budgets and destinations that
	// the records name, by the id in the record: of what was deleted, and of people who were removed, that
	// of a record read until then.
	Names map[string]string `json:"names"`
	More  bool              `json:"has_more"`
	// Next is the value of before for the next page.
	Next  int64       `json:"next,omitempty"`
	Chain *chainState `json:"chain,omitempty"`
}

// auditList answers GET /api/audit?before=&limit=&verify=true: the newest records
// first, those before the number "before" when it is given. A page may have fewer
// records than its limit although there are more, because a call reads 2,000 at most:
//
//	actor     operator, system, seed, key or person for those of all keys or people, key:<masked id>
//	          or person:<id>
//	kind      what was changed: keys, providers, models, settings, sign-in, …
//	q         a part of the action, the target or its name, or a field; or the id of a key
//	from, to  Unix milliseconds
//	ids       ids between commas: the newest record of each alone, with its name by the id
func (c *change) auditList() (any, error) {
	number := func(name string, otherwise, least, most int64) (int64, error) {
		v := c.query(name)
		if v == "" {
			return otherwise, nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most {
			return 0, apierr.Invalid(name, "%s must be an integer from %d to %d.", name, least, most)
		}
		return n, nil
	}
	limit, before, from, to := int64(100), c.Meta.AuditSeq+1, int64(0), int64(1<<53)
	for _, p := range [...]struct {
		name        string
		to          *int64
		least, most int64
	}{{"limit", &limit, 1, storage.MaxAuditPage}, {"before", &before, 1, 1 << 53}, {"from", &from, 0, 1 << 53},
		{"to", &to, 0, 1 << 53}} {
		n, err := number(p.name, *p.to, p.least, p.most)
		if err != nil {
			return nil, err
		}
		*p.to = n
	}
	asked := map[string]string{} // ids by the targets of their records
	ids := c.query("ids")
	if ids != "" {
		list := strings.Split(ids, ",")
		if len(list) > maxAuditIDs {
			return nil, apierr.Invalid("ids", "ids must have at most %d ids.", maxAuditIDs)
		}
		for _, id := range list {
			asked[id], asked[c.o.MaskedKey(id)] = id, id
		}
	}
	names := c.auditNames()
	actor, kind, text := c.query("actor"), c.query("kind"), strings.ToLower(strings.TrimSpace(c.query("q")))
	ofKey := c.o.MaskedKey(text)
	wanted := func(r *storage.Record) bool {
		return r.At >= from && r.At <= to &&
			(actor == "" || r.Actor == actor || (actor == "key" || actor == "person") &&
				strings.HasPrefix(r.Actor, actor+":")) &&
			(kind == "" || auditKind(r.Action) == kind) &&
			(text == "" || r.Target == ofKey || recordHas(r, names, text)) &&
			(ids == "" || asked[r.Target] != "")
	}
	out := auditPage{Object: "list", Data: []json.RawMessage{}, Names: map[string]string{}}
	last := min(before, c.Meta.AuditSeq+1)
	for seq := last - 1; seq > 0 && (ids == "" || len(asked) > 0); seq-- {
		var a storage.AuditRow
		var r storage.Record
		if !c.Load(storage.AuditKey(seq), &a) {
			break
		}
		if int64(len(out.Data)) == limit || last-seq > maxAuditScan {
			out.More, out.Next = true, seq+1
			break
		}
		if json.Unmarshal(a.Record, &r) != nil {
			continue
		}
		if names[r.Target] == "" { // it may have been restored
			names[r.Target] = r.Name
		}
		if !wanted(&r) {
			continue
		}
		out.Data = append(out.Data, a.Record)
		if id := asked[r.Target]; id != "" {
			out.Names[id] = names[r.Target]
			delete(asked, id)
			delete(asked, c.o.MaskedKey(id))
		}
		for _, id := range [...]string{r.Target, actorID(r.Actor)} {
			if name := names[id]; name != "" {
				out.Names[id] = name
			}
		}
	}
	if c.query("verify") == "true" {
		at := c.ChainBreak()
		out.Chain = &chainState{at == 0, at}
	}
	return out, nil
}

type chainState struct {
	OK       bool  `json:"ok"`
	BrokenAt int64 `json:"brokenAt,omitempty"`
}

// auditNames returns the names of what records name, by the ids in them.
func (c *change) auditNames() map[string]string {
	names := map[string]string{c.ID: c.Meta.Name}
	for _, k := range c.Keys() {
		names[c.o.MaskedKey(k.ID)] = shownName(&k)
	}
	for _, row := range c.Connections() {
		if names[row.ID] = row.Name; row.Name == "" {
			names[row.ID] = row.Provider
		}
	}
	for _, row := range c.Combos() {
		names[row.ID] = row.Name
	}
	for _, row := range c.Budgets() {
		names[row.ID] = row.Name
	}
	for _, row := range c.Destinations() {
		names[row.ID] = row.Name
	}
	return names
}

// auditKind returns what an action is about: "keys" of "PUT /api/keys/{id}".
func auditKind(action string) string {
	_, path, ok := strings.Cut(action, " /")
	if !ok {
		return action // sign-in, refresh, adopt
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(path, "api/"), "/")
	return kind
}

// actorID returns the id of a key or a person who acted.
func actorID(actor string) string {
	return strings.TrimPrefix(strings.TrimPrefix(actor, "key:"), "person:")
}

func recordHas(r *storage.Record, names map[string]string, text string) bool {
	for _, s := range append([]string{r.Action, r.Target, names[r.Target], r.Actor,
		names[actorID(r.Actor)]}, r.Fields...) {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}
