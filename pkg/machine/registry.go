package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/redact"
)

// The registry is the object that keeps the list of machines. A machine writes
// its intent there before its creation, renaming or deletion, and confirms it
// afterwards, by alarm until that succeeds. An intent in between is resolved by asking the
// machine itself, so a crash at any point loses nothing that was visible.

const (
	machinePrefix = "machine:"
	tokenRow      = "token"                                   // see Object.Token
	intentFor     = int64(5 * time.Minute / time.Millisecond) // an older intent came to nothing
	maxResolve    = 20                                        // of one listing
	maxTick       = 40                                        // machines of one tick
)

// States of a machine in the registry.
const (
	creating  = "creating"
	renaming  = "renaming"
	active    = "active"
	deleting  = "deleting"
	deleted   = "deleted" // can be restored
	restoring = "restoring"
	gone      = "" // not in the list
)

// machineRow is a machine in the registry.
type machineRow struct {
	ID        string `json:"machineId"`
	Name      string `json:"name,omitempty"`
	CreatedAt int64  `json:"createdAt"`
	State     string `json:"state,omitempty"`
	DeletedAt int64  `json:"deletedAt,omitempty"`
	At        int64  `json:"at,omitempty"` // of the state
	// Now reports that a deletion erases at once.
	Now bool `json:"now,omitempty"`
}

// registryPut notes the state of a machine.
func (o *Object) registryPut(r *storage.Call) (any, error) {
	var m machineRow
	if json.Unmarshal(r.Body, &m) != nil || !rpc.IsMachineID(m.ID) {
		return nil, apierr.Invalid("machineId", "machineId is not valid.")
	}
	auditMachine(r.Tx, m)
	setMachine(r.Tx, m)
	return struct{}{}, nil
}

// auditMachine appends the record of what is to be done with a machine, whose own audit log ends with it: of an
// intent, since the next one may come before it is confirmed. A machine whose time has come is erased without one.
func auditMachine(t *storage.Tx, m machineRow) {
	var before machineRow
	t.Load(machinePrefix+m.ID, &before)
	actor, action := "operator", ""
	switch {
	case m.State == creating:
		action = "POST /api/machines"
	case m.State == renaming:
		action = "PATCH /api/machines/{id}"
	case m.State == deleting && !m.Now:
		action = "DELETE /api/machines/{id}"
	case m.State == restoring:
		action = "POST /api/machines/{id}/restore"
	case m.State == deleting:
		action = "machine.erase"
	case m.State == gone && before.State == deleted:
		actor, action = "system", "machine.erase"
	default:
		return
	}
	registryAudit(t, storage.Record{Actor: actor, Action: action, Target: m.ID,
		Name: redact.Patterns(cmp.Or(m.Name, before.Name))})
}

// noteToken records that the operator token is another one than before. Servers that share a database have the
// same one.
func (o *Object) noteToken(t *storage.Tx) {
	var known string
	if t.Load(tokenRow, &known); o.Token == "" || known == o.Token {
		return
	}
	if known != "" {
		registryAudit(t, storage.Record{Actor: "operator", Action: "token.rotate"})
	}
	t.Put(tokenRow, o.Token)
}

func setMachine(t *storage.Tx, m machineRow) {
	t.Meta.ID = rpc.RegistryID
	t.Meta.Generation++ // the registry is never published
	if m.State == gone {
		t.Del(machinePrefix + m.ID)
		forgetMachine(t, m.ID)
		return
	}
	m.At = t.Now
	m.CreatedAt = cmp.Or(m.CreatedAt, t.Now)
	t.Put(machinePrefix+m.ID, m)
}

// Bounds of a page of machines.
const (
	machinesPage    = 100
	maxMachinesPage = 1000
)

// listQuery is the body of the operation "list".
type listQuery struct {
	Limit  int    `json:"limit,omitempty"`  // 100 by default
	Cursor string `json:"cursor,omitempty"` // "next" of the previous page
	Query  string `json:"q,omitempty"`      // a part of the id or of the name
	Person string `json:"person,omitempty"` // the id of the one who asks; "" for the operator
	// Deleted asks for the machines that can be restored, instead of the others.
	Deleted bool `json:"deleted,omitempty"`
}

// listedMachine is a machine on a page, with the role there of the person who asks.
type listedMachine struct {
	ID        string      `json:"machineId"`
	Name      string      `json:"name,omitempty"`
	CreatedAt int64       `json:"createdAt"`
	Role      people.Role `json:"role,omitempty"`
	// DeletedAt is set if the machine was deleted and can be restored until RestoreUntil.
	DeletedAt    int64 `json:"deletedAt,omitempty"`
	RestoreUntil int64 `json:"restoreUntil,omitempty"`
}

// listed is a machine in a scan of the registry. Its row is decoded only if it
// is on the page.
type listed struct {
	createdAt int64
	id        string
	row       []byte
}

func (l *listed) before(o *listed) bool {
	return l.createdAt < o.createdAt || l.createdAt == o.createdAt && l.id < o.id
}

// registryList returns a page of the machines in the order of their creation.
//
//	list {limit, cursor, q, person, deleted} →
//	200 {"object":"list","data":[listedMachine],"has_more","next","total"}
//
// A person gets the machines where they have a role now. total is the number of machines that
// match. A page costs one pass over the rows, which are read from the storage some at a time.
func (o *Object) registryList(r *storage.Call) (any, error) {
	var q listQuery
	if len(r.Body) > 0 && json.Unmarshal(r.Body, &q) != nil || q.Limit < 0 || q.Limit > maxMachinesPage {
		return nil, apierr.Invalid("limit", "limit must be an integer from 1 to %d.", maxMachinesPage)
	}
	q.Limit = cmp.Or(q.Limit, machinesPage)
	var after *listed
	if q.Cursor != "" {
		at, id, ok := strings.Cut(q.Cursor, ".")
		n, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil || !rpc.IsMachineID(id) {
			return nil, apierr.Invalid("cursor", "cursor must be the field next of the previous page.")
		}
		after = &listed{createdAt: n, id: id}
	}
	wanted := machineFilter{text: strings.ToLower(strings.TrimSpace(q.Query)), deleted: q.Deleted}
	if q.Person != "" {
		p, ok := loadPerson(r.Tx, q.Person)
		if !ok {
			return nil, errNoSession()
		}
		wanted.roles = p.roles()
	}
	all, pending := machines(r.Tx, &wanted)
	if len(pending) > 0 {
		if err := o.resolve(r, pending); err != nil {
			return nil, err
		}
		all, _ = machines(r.Tx, &wanted)
	}
	out := struct {
		Object string          `json:"object"`
		Data   []listedMachine `json:"data"`
		More   bool            `json:"has_more"`
		Next   string          `json:"next,omitempty"`
		Total  int             `json:"total"`
	}{"list", []listedMachine{}, false, "", len(all)}
	sort.Slice(all, func(i, j int) bool { return all[i].before(&all[j]) })
	from := 0
	if after != nil {
		from = sort.Search(len(all), func(i int) bool { return after.before(&all[i]) })
	}
	for i := from; i < len(all); i++ {
		if len(out.Data) == q.Limit {
			last := &all[i-1]
			out.More, out.Next = true, strconv.FormatInt(last.createdAt, 10)+"."+last.id
			break
		}
		var m listedMachine
		if json.Unmarshal(all[i].row, &m) == nil {
			m.Role = wanted.roles.Of(m.ID).Role
			if m.DeletedAt > 0 {
				m.RestoreUntil = m.DeletedAt + storage.RestorableFor
			}
			out.Data = append(out.Data, m)
		}
	}
	return out, nil
}

// machineFilter are the machines that match a lower-case text, for a person of those with a role.
type machineFilter struct {
	text    string
	deleted bool          // those that can be restored, instead of the others
	roles   people.Grants // nil for the operator
}

func (f *machineFilter) has(id, name string) bool {
	return (f.roles == nil || f.roles.Of(id).Role.Valid()) &&
		(f.text == "" || strings.Contains(id, f.text) || strings.Contains(strings.ToLower(name), f.text))
}

// machines returns the machines that are wanted, and those whose state must be resolved.
func machines(t *storage.Tx, wanted *machineFilter) (all []listed, pending []machineRow) {
	t.Pages(machinePrefix, storage.SmallPage, func(row storage.Row) bool {
		state := gjson.GetBytes(row.Value, "state").Str
		if state != active && state != deleted && len(pending) < maxResolve {
			var m machineRow
			if json.Unmarshal(row.Value, &m) == nil {
				pending = append(pending, m)
			}
		}
		id := strings.TrimPrefix(row.Key, machinePrefix)
		if state == creating || (state == deleted) != wanted.deleted ||
			!wanted.has(id, gjson.GetBytes(row.Value, "name").Str) {
			return true
		}
		all = append(all, listed{gjson.GetBytes(row.Value, "createdAt").Int(), id, row.Value})
		return true
	})
	return all, pending
}

// resolve asks machines whose creation, deletion or restoration was not confirmed for their
// state.
func (o *Object) resolve(r *storage.Call, pending []machineRow) error {
	for _, m := range pending {
		ctx, err := r.Outside()
		if err != nil {
			return err
		}
		status, answer, err := o.Objects.Call(ctx, m.ID, "exists", []byte(`{"deleted":true}`))
		r.Reload(o.Now())
		var now, is machineRow
		if err != nil || !r.Load(machinePrefix+m.ID, &now) || now.State != m.State || now.At != m.At {
			continue
		}
		switch {
		case status == 200 && json.Unmarshal(answer, &is) != nil: // an unreadable answer says nothing
		case status == 200 && (m.State != deleting || is.State == deleted || r.Now-m.At > intentFor):
			is.ID, is.State = m.ID, cmp.Or(is.State, active) // an earlier version has said none
			setMachine(r.Tx, is)
		case status == 404 && (m.State == deleting || r.Now-m.At > intentFor):
			now.State = gone
			setMachine(r.Tx, now)
		}
		if err := r.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// registryTick wakes machines whose alarm may have been lost, some at a time.
func (o *Object) registryTick(r *storage.Call) (any, error) {
	var from string
	r.Load("cursor", &from)
	rows := r.Scan(machinePrefix, from, maxTick)
	next := ""
	if len(rows) == maxTick {
		next = rows[len(rows)-1].Key
	}
	if next != from {
		r.Meta.ID = rpc.RegistryID
		r.Meta.Generation++
		r.Put("cursor", next)
	}
	o.noteToken(r.Tx)
	if o.Keyring.Rotating() { // people and identity providers: no alarm prunes the registry
		o.reseal(r)
	}
	if err := r.Commit(); err != nil {
		return nil, err
	}
	body := notices(r.Tx)
	ctx, err := r.Outside()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		o.Objects.Call(ctx, strings.TrimPrefix(row.Key, machinePrefix), "tick", body)
	}
	r.Reload(o.Now())
	return struct {
		Machines int `json:"machines"`
	}{len(rows)}, nil
}

// Cron is the scheduled trigger: alarms that were lost are set again, which
// leads to refreshes, pruning and publishing that are due.
func (o *Object) Cron(ctx context.Context) {
	if _, _, err := o.Objects.Call(ctx, rpc.RegistryID, "tick", nil); err != nil {
		o.WriteLog("cron: the registry did not answer")
	}
}

// register reports the state of the machine to the registry.
func (o *Object) register(r *storage.Call) {
	if !r.Meta.Unregistered || r.Meta.RegisterFrom > r.Now || o.Objects == nil {
		return
	}
	m := registered(r.Tx)
	ctx, err := r.Outside()
	if err != nil {
		return
	}
	status, _, err := o.Objects.Call(ctx, rpc.RegistryID, "put", storage.Encode(m))
	r.Reload(o.Now())
	switch {
	case err != nil || status != 200:
		r.Meta.RegisterFail++
		r.Meta.RegisterFrom = r.Now + storage.Backoff(r.Meta.RegisterFail)
		o.WriteLog(fmt.Sprintf("machine %s: the registry did not answer, try %d", r.ID, r.Meta.RegisterFail))
	case registered(r.Tx) == m:
		r.Meta.Unregistered, r.Meta.RegisterFail = false, 0
	default: // it was deleted or renamed meanwhile
		r.Meta.Unregistered = true
	}
	if r.Commit() != nil {
		r.Reload(o.Now())
	}
}
