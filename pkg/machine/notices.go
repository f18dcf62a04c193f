package machine

import (
	"encoding/json"
	"fmt"
	"slices"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
)

// Notices are about the gateway as a whole. The registry stores them, and the scheduled
// call to the machines has them as its body; each machine tells its destinations.

const (
	noticesRow  = "notices"
	placesRow   = "places"
	maxNotices  = 20
	maxPlaces   = 50
	noticeAgain = storage.Day // until one of the same event is taken again
	noticeFresh = storage.Hour
)

// registryNotice stores a notice.
//
//	notice rpc.Notice → 200 {}
func (o *Object) registryNotice(r *storage.Call) (any, error) {
	var n rpc.Notice
	if json.Unmarshal(r.Body, &n) != nil || !deliver.IsEvent(n.Event) {
		return nil, apierr.Invalid("event", "event is not valid.")
	}
	addNotice(r.Tx, n)
	return struct{}{}, nil
}

func addNotice(t *storage.Tx, n rpc.Notice) {
	var all []rpc.Notice
	t.Load(noticesRow, &all)
	again := slices.ContainsFunc(all, func(had rpc.Notice) bool {
		return had.Event == n.Event && had.Text == n.Text && had.At > t.Now-noticeAgain && had.At <= t.Now
	})
	if again {
		return
	}
	n.At = t.Now
	if len(all) > 0 {
		n.At = max(n.At, all[len(all)-1].At+1)
	}
	t.Meta.ID = rpc.RegistryID
	t.Meta.Generation++
	all = append(all, n)
	t.Put(noticesRow, all[max(0, len(all)-maxNotices):])
}

// notices returns those that the machines may not know, as the body of a tick.
func notices(t *storage.Tx) []byte {
	var all []rpc.Notice
	t.Load(noticesRow, &all)
	all = slices.DeleteFunc(all, func(n rpc.Notice) bool { return n.At < t.Now-noticeFresh })
	if len(all) == 0 {
		return nil
	}
	return storage.Encode(all)
}

// notifyNotices notifies of the notices that the machine does not know yet.
func (o *Object) notifyNotices(t *storage.Tx, body []byte) {
	var all []rpc.Notice
	if len(body) == 0 || json.Unmarshal(body, &all) != nil || !t.Exists() ||
		len(deliver.Targets(t, storage.Notification)) == 0 {
		return
	}
	f := t.Faults()
	last := f.Notice
	for _, n := range all {
		if n.At > last {
			f.Notice = max(f.Notice, n.At)
			if n.Machines != nil && !slices.Contains(n.Machines, t.ID) {
				continue
			}
			o.Notify(t, n.Event, &deliver.Message{Title: n.Title, Text: n.Text, Level: deliver.Warn}, nil)
		}
	}
	if f.Notice > last {
		t.PutFaults(&f)
	}
}

// newPlace reports whether a sign-in comes from an address that the object does not know,
// by its digest, and notes it. The first one is not new.
func newPlace(t *storage.Tx, from string) bool {
	var known []string
	t.Load(placesRow, &known)
	isNew, changed := notePlace(&known, from)
	if changed {
		t.Put(placesRow, known)
	}
	return isNew
}

// notePlace adds the digest of an address to the known ones.
func notePlace(known *[]string, from string) (isNew, changed bool) {
	if !rpc.IsLowerAlphanumeric(from, 32) || slices.Contains(*known, from) {
		return false, false
	}
	all := append(*known, from)
	*known = all[max(0, len(all)-maxPlaces):]
	return len(all) > 1, true
}

// personSignedIn notifies of a sign-in from an address that is new for a person: the machines
// that they may change.
func (o *Object) personSignedIn(t *storage.Tx, p *personRow, name string, in *rpc.SessionOpen) {
	if isNew, _ := notePlace(&p.Places, in.From); !isNew {
		return
	}
	n := rpc.Notice{Event: deliver.AdminSignIn, Title: "Sign-in from a new address",
		Text: fmt.Sprintf("It was %s, from %s at %s. If that was not them, remove them from People at once.",
			deliver.Plain(name, 100), deliver.Plain(in.Address, 64), o.Clock(t, t.Now)), Machines: []string{}}
	roles := p.roles()
	for machine := range roles {
		if !roles.Of(machine).Role.AtLeast(people.Editor) {
			continue
		}
		if machine == people.Everywhere {
			n.Machines = nil
			break
		}
		n.Machines = append(n.Machines, machine)
	}
	if n.Machines == nil || len(n.Machines) > 0 {
		slices.Sort(n.Machines)
		addNotice(t, n)
	}
}

// signedIn notifies of a sign-in from a new address: of the operator all machines, of a key
// its own.
func (o *Object) signedIn(r *storage.Call, in *rpc.SessionOpen) {
	if !newPlace(r.Tx, in.From) {
		return
	}
	who := "the operator token"
	if in.KeyID != "" {
		who = "the key " + o.MaskedKey(in.KeyID)
	}
	n := rpc.Notice{Event: deliver.AdminSignIn, Title: "Sign-in from a new address",
		Text: fmt.Sprintf("It was %s, from %s at %s. If that was not you, replace it at once.", who,
			deliver.Plain(in.Address, 64), o.Clock(r.Tx, r.Now))}
	if r.ID == rpc.RegistryID {
		addNotice(r.Tx, n)
		return
	}
	m := &deliver.Message{Title: n.Title, Text: n.Text, Level: deliver.Warn, Link: o.Link(r.Tx, "keys")}
	o.Notify(r.Tx, n.Event, m, nil)
}
