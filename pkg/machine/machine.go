// Package machine is the object that holds the durable state of one machine and
// changes it one turn at a time.
package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Object is the logic of the machines' objects; one value serves all of an
// instance. Calls of different machines may run at the same time, those of one
// machine one at a time, but for the waits of a call.
type Object struct {
	manage.Manager
	KV store.KV // of replicas; nil for none
	// MaxRequests is the number of the latest requests that a machine lists. 0 is
	// storage.MaxRequests.
	MaxRequests int64

	// Token is a digest of the operator token: the registry records a change. "" is not compared.
	Token string
	// Seat is the name of this program, and SeatAlive reports whether one lives, if several that
	// know of each other serve the machines; else "" and nil.
	Seat      string
	SeatAlive func(name string) bool

	buffers buffers

	mu     sync.Mutex
	seat   string         // see seatID
	closed map[string]int // by machine; see closedNow
}

// ops are the operations of a machine's object; package rpc has their shapes.
var ops = [...]struct {
	name   string
	handle func(o *Object, r *storage.Call) (any, error)
}{
	{"snapshot", (*Object).snapshot},
	{"report", (*Object).report},
	{"budget.take", (*Object).budgetTake},
	{"refresh", (*Object).Refresh},
	{"job.put", (*Object).jobPut},
	{"job.get", (*Object).jobGet},
	{"job.bill", (*Object).jobBill},
	{"idem.begin", (*Object).idemBegin},
	{"idem.end", (*Object).idemEnd},
	{"manage", (*Object).Manage},
	{"adopt", (*Object).adopt},
	{"create", (*Object).create},
	{"delete", (*Object).remove},
	{"restore", (*Object).restore},
	{"probe", (*Object).AdmitTest},
	{"tested", (*Object).RecordTest},
	{"rename", (*Object).rename},
	{"exists", (*Object).existing},
	{"tick", (*Object).tick},
	{"flush", (*Object).flush},
	{"session.open", (*Object).sessionOpen},
	{"session.check", (*Object).sessionCheck},
	{"session.end", (*Object).sessionEnd},
	{"oauth.callback", (*Object).FinishSignIn},
	{"lease.claim", (*Object).ClaimLease},
	{"key.usage", (*Object).OwnUsage},
	{"key.request", (*Object).OwnRequest},
	{"capture.put", (*Object).capturePut},
	{"metrics", (*Object).metrics},
	{"status", (*Object).PublicStatus},
}

// registryOps are those of the registry.
var registryOps = [...]struct {
	name   string
	handle func(o *Object, r *storage.Call) (any, error)
}{
	{"put", (*Object).registryPut},
	{"list", (*Object).registryList},
	{"tick", (*Object).registryTick},
	{"prices.put", (*Object).pricesPut},
	{"prices.get", (*Object).pricesGet},
	{"feeds.take", (*Object).feedsTake},
	{"feeds.put", (*Object).feedsPut},
	{"session.open", (*Object).sessionOpen},
	{"session.check", (*Object).sessionCheck},
	{"session.end", (*Object).sessionEnd},
	{"session.failed", (*Object).sessionFailed},
	{"device.start", (*Object).deviceStart},
	{"device.find", (*Object).deviceFind},
	{"device.decide", (*Object).deviceDecide},
	{"device.poll", (*Object).devicePoll},
	{"notice", (*Object).registryNotice},
	{"idp.list", (*Object).idpList},
	{"idp.put", (*Object).idpPut},
	{"idp.delete", (*Object).idpDelete},
	{"signIn.spend", (*Object).signInSpend},
	{"signIn.failed", (*Object).signInFailed},
	{"signIn.list", (*Object).signInList},
	{"role.refused", (*Object).roleRefused},
	{"person.signIn", (*Object).personSignIn},
	{"person.seen", (*Object).personSeen},
	{"person.end", (*Object).personEnd},
	{"person.list", (*Object).personList},
	{"person.names", (*Object).personNames},
	{"person.set", (*Object).personSet},
	{"person.export", (*Object).personExport},
	{"person.import", (*Object).personImport},
	{"invite.create", (*Object).inviteCreate},
	{"invite.show", (*Object).inviteShow},
	{"invite.delete", (*Object).inviteDelete},
	{"passkey.begin", (*Object).passkeyBegin},
	{"passkey.find", (*Object).passkeyFind},
	{"passkey.list", (*Object).passkeyList},
	{"passkey.add", (*Object).passkeyAdd},
	{"passkey.rename", (*Object).passkeyRename},
	{"passkey.delete", (*Object).passkeyDelete},
}

// begin begins a turn. Its buffer is released when the turn is over.
func (o *Object) begin(st storage.Storage, machineID string) (*storage.Tx, *turn) {
	t := o.Begin(st, machineID)
	t.Judge = o.judge
	t.Unpublished, t.MaxRequests, t.Began = o.KV == nil, o.MaxRequests, o.Began
	t.SeatAlive = o.SeatAlive
	b := &turn{o: o, tx: t}
	t.Buffer = b
	return t, b
}

// Handle serves one call. The answer is JSON; a failure is
// {"error":{"message","type","code","param","retryAfterMs"}} with its status.
// A storage failure is 503 and changes nothing.
func (o *Object) Handle(ctx context.Context, st storage.Storage, machineID, op string,
	body []byte) (status int, answer []byte) {
	tx, buffer := o.begin(st, machineID)
	defer buffer.release()
	r := storage.NewCall(ctx, tx, body)
	switch op {
	case "manage", "tested", "probe", "adopt", "oauth.callback", "lease.claim", "key.usage", "key.request", "flush",
		"metrics":
		buffer.settle()
	}
	v, err := any(nil), r.Err()
	if err == nil {
		v, err = o.dispatch(r, op)
	}
	switch {
	case r.Settled:
	case r.Err() != nil: // a refusal may be due to absent rows
		err = r.Err()
	case err == nil:
		err = r.Commit()
	}
	if err != nil {
		return o.failed(machineID, op, err)
	}
	if op == "delete" {
		o.buffers.drop(machineID)
	}
	switch a := v.(type) {
	case storage.Reply:
		return a.Status, storage.Encode(a.Body)
	default:
		return 200, storage.Encode(v)
	}
}

func (o *Object) dispatch(r *storage.Call, op string) (any, error) {
	if r.ID == rpc.RegistryID {
		for i := range registryOps {
			if registryOps[i].name == op {
				return registryOps[i].handle(o, r)
			}
		}
	} else if rpc.IsMachineID(r.ID) {
		for i := range ops {
			if ops[i].name == op {
				return ops[i].handle(o, r)
			}
		}
	}
	return nil, apierr.New(404, "unknown_operation", "The object has no such operation.")
}

func (o *Object) failed(machineID, op string, err error) (int, []byte) {
	var e *apierr.Error
	if !errors.As(err, &e) {
		e = apierr.New(500, "", "Internal error.")
		e.Err = err
	}
	if e.Status >= 500 && e.Err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: %s: %v", machineID, op, e.Err))
	}
	return e.Status, storage.Encode(rpc.FailureOf(e))
}
