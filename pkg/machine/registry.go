package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
)

// The registry is the object that keeps the list of machines. A machine writes
// its intent there before it is made or deleted, and confirms it afterwards, by
// alarm until it is heard. An intent in between is resolved by asking the
// machine itself, so a crash at any point loses nothing that was visible.

const (
	machinePrefix = "machine:"
	intentFor     = int64(5 * time.Minute / time.Millisecond) // an older intent came to nothing
	maxResolve    = 20                                        // of one listing
	maxTick       = 40                                        // machines of one tick
)

// States of a machine in the registry.
const (
	creating = "creating"
	active   = "active"
	deleting = "deleting"
	gone     = "" // not in the list
)

// machineRow is a machine in the registry.
type machineRow struct {
	ID        string `json:"machineId"`
	Name      string `json:"name,omitempty"`
	CreatedAt int64  `json:"createdAt"`
	State     string `json:"state,omitempty"`
	At        int64  `json:"at,omitempty"` // of the state
}

// registryPut notes the state of a machine.
func (o *Object) registryPut(r *request) (any, error) {
	var m machineRow
	if json.Unmarshal(r.body, &m) != nil || !isMachineID(m.ID) {
		return nil, apierr.Invalid("machineId", "not a machineId")
	}
	r.setMachine(m)
	return struct{}{}, nil
}

func (r *request) setMachine(m machineRow) {
	r.meta.ID = RegistryID
	r.meta.Generation++ // the registry is never published
	if m.State == gone {
		r.del(machinePrefix + m.ID)
		return
	}
	m.At = r.now
	if m.CreatedAt == 0 {
		m.CreatedAt = r.now
	}
	r.put(machinePrefix+m.ID, m)
}

// registryList gives the machines in the order of their making.
func (o *Object) registryList(r *request) (any, error) {
	asked := 0
	for _, m := range rowsOf[machineRow](r.tx, machinePrefix) {
		if m.State == active || asked == maxResolve {
			continue
		}
		asked++
		status, answer, err := o.Objects.Call(r.ctx, m.ID, "exists", nil)
		r.reload(o.Now())
		var now machineRow
		if err != nil || !r.load(machinePrefix+m.ID, &now) || now.State != m.State || now.At != m.At {
			continue
		}
		switch {
		case status == 200 && m.State == creating, status == 200 && r.now-m.At > intentFor:
			now.State = active
			now.Name, now.CreatedAt = gjson.GetBytes(answer, "name").Str, gjson.GetBytes(answer, "createdAt").Int()
			r.setMachine(now)
		case status == 404 && (m.State == deleting || r.now-m.At > intentFor):
			now.State = gone
			r.setMachine(now)
		}
		if err := r.commit(); err != nil {
			return nil, err
		}
	}
	out := struct {
		Object string       `json:"object"`
		Data   []machineRow `json:"data"`
	}{"list", []machineRow{}}
	for _, m := range rowsOf[machineRow](r.tx, machinePrefix) {
		if m.State != creating {
			m.State, m.At = "", 0
			out.Data = append(out.Data, m)
		}
	}
	sortMachines(out.Data)
	return out, nil
}

func sortMachines(list []machineRow) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && (list[j].CreatedAt < list[j-1].CreatedAt || list[j].CreatedAt == list[j-1].CreatedAt && list[j].ID < list[j-1].ID); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// registryTick wakes machines whose alarm may have been lost, some at a time.
func (o *Object) registryTick(r *request) (any, error) {
	var from string
	r.load("cursor", &from)
	rows := r.st.List(machinePrefix, from, maxTick)
	next := ""
	if len(rows) == maxTick {
		next = rows[len(rows)-1].Key
	}
	if next != from {
		r.meta.ID = RegistryID
		r.meta.Generation++
		r.put("cursor", next)
		if err := r.commit(); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		o.Objects.Call(r.ctx, strings.TrimPrefix(row.Key, machinePrefix), "tick", nil)
	}
	r.reload(o.Now())
	return struct {
		Machines int `json:"machines"`
	}{len(rows)}, nil
}

// Cron is the scheduled trigger: alarms that were lost are set again, which
// leads to refreshes, pruning and publishing that are due.
func (o *Object) Cron(ctx context.Context) {
	if _, _, err := o.Objects.Call(ctx, RegistryID, "tick", nil); err != nil {
		o.log("cron: the registry did not answer")
	}
}

// register tells the registry what became of the machine.
func (o *Object) register(r *request) {
	if !r.meta.Unregistered || r.meta.RegisterFrom > r.now || o.Objects == nil {
		return
	}
	m := machineRow{ID: r.id, Name: r.meta.Name, CreatedAt: r.meta.CreatedAt, State: active}
	if r.meta.Deleted {
		m.State = gone
	}
	status, _, err := o.Objects.Call(r.ctx, RegistryID, "put", encode(m))
	r.reload(o.Now())
	switch {
	case err != nil || status != 200:
		r.meta.RegisterFail++
		r.meta.RegisterFrom = r.now + backoff(r.meta.RegisterFail)
		o.log(fmt.Sprintf("machine %s: the registry did not answer, try %d", r.id, r.meta.RegisterFail))
	case r.meta.Deleted == (m.State == gone):
		r.meta.Unregistered, r.meta.RegisterFail = false, 0
	}
	if r.commit() != nil {
		r.reload(o.Now())
	}
}
