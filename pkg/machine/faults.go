package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
)

const (
	// quietFault is how long a fault that comes back is not reported again.
	quietFault = storage.Hour
	// downHold is how long limits must have closed a model.
	downHold = storage.Minute
	// coolGap is the pause between two limits of one that lasts.
	coolGap        = 2 * storage.Minute
	coolingMinutes = 15 // if a destination has not set it
	// maxFaults bounds the row of the faults: callers choose the names of models.
	maxFaults = 200
)

// judge compares the faults of the accounts with those that are known, and notifies of what
// has begun and of what is over. It runs within the turn that has changed their state.
func (o *Object) judge(t *storage.Tx) {
	t.Meta.JudgeAt = 0
	if len(deliver.Targets(t, storage.Notification)) == 0 {
		return
	}
	known, now := t.Faults(), o.faults(t)
	before := string(storage.Encode(known))
	rate(t, now, &known)
	o.weekly(t, &known)
	for _, key := range manage.SortedKeys(known.All) {
		f := known.All[key]
		switch {
		case f.Over > 0 && t.Now-f.Over >= quietFault && !now.has(key):
			delete(known.All, key)
		case f.Over == 0 && !now.has(key) && !lasts(t, &f):
			o.ended(t, &f, key, now)
			if known.All[key] = f; f.Told == 0 { // nothing to be remembered
				delete(known.All, key)
			}
		}
	}
	for _, key := range manage.SortedKeys(now) {
		f, had := known.All[key]
		if !had && !room(known.All) {
			continue
		}
		fresh := now[key]
		if !had || f.Over > 0 {
			fresh.Told = f.Told
			f = fresh
		}
		f.Why, f.Subject, f.Until, f.Level = fresh.Why, fresh.Subject, fresh.Until, fresh.Level
		o.began(t, &f)
		known.All[key] = f
	}
	for _, f := range known.All {
		o.plan(t, &f)
	}
	if string(storage.Encode(known)) != before {
		t.PutFaults(&known)
	}
}

// room makes room for another fault, in the place of the one that ended first, and reports
// whether there is any.
func room(all map[string]storage.Fault) bool {
	if len(all) < maxFaults {
		return true
	}
	first := ""
	for key, f := range all {
		if f.Over > 0 && (first == "" || f.Over < all[first].Over) {
			first = key
		}
	}
	delete(all, first)
	return first != ""
}

// faultSet are faults by a key.
type faultSet map[string]storage.Fault

func (s faultSet) has(key string) bool { _, ok := s[key]; return ok }

// lasts reports whether a limit that has ended may be followed by the next.
func lasts(t *storage.Tx, f *storage.Fault) bool {
	return f.Event == deliver.AccountCooling && f.Until > 0 && t.Now < f.Until+coolGap && t.Now > f.Since
}

// plan sets when judge is due by the clock alone.
func (o *Object) plan(t *storage.Tx, f *storage.Fault) {
	at := func(when int64) {
		if when > t.Now && (t.Meta.JudgeAt == 0 || when < t.Meta.JudgeAt) {
			t.Meta.JudgeAt = when
		}
	}
	switch {
	case f.Over > 0:
		return
	case f.Event == deliver.AccountCooling:
		at(f.Until)
		at(f.Until + coolGap)
	case f.Until > 0:
		at(f.Until)
	}
	if !f.Open {
		at(f.Since + f.Hold)
		at(f.Told + quietFault)
	}
}

// began notifies of a fault unless that was done, or the last time is less than an hour ago.
func (o *Object) began(t *storage.Tx, f *storage.Fault) {
	if t.Now < f.Since+f.Hold || !f.Open && f.Told > 0 && t.Now < f.Told+quietFault && t.Now >= f.Told {
		return
	}
	m := o.begins(t, f)
	if f.Event != deliver.AccountCooling && f.Event != deliver.ErrorRate {
		if !f.Open {
			o.Notify(t, f.Event, m, nil)
			f.Open, f.Told = true, t.Now
		}
		return
	}
	if f.Event == deliver.AccountCooling {
		f.Level = int((f.Until - f.Since) / storage.Minute)
	}
	if f.Level <= f.Reached {
		return
	}
	told := f.Reached
	o.Notify(t, f.Event, m, func(d *storage.Destination) bool {
		n := threshold(d, f.Event)
		if n <= told || n > f.Level {
			return false
		}
		f.Open, f.Told, f.Reached = true, t.Now, max(f.Reached, n)
		return true
	})
}

// threshold returns from which level of a fault on a destination is told of it; 0 for any.
func threshold(d *storage.Destination, event string) int {
	switch event {
	case deliver.AccountCooling:
		return minutesOf(d)
	case deliver.ErrorRate:
		return percentOf(d)
	}
	return 0
}

func minutesOf(d *storage.Destination) int {
	n, _ := strconv.Atoi(d.Options["coolingMinutes"])
	return cmp.Or(n, coolingMinutes)
}

// ended notes that a fault is over and notifies of it, unless its account has another one
// or is gone.
func (o *Object) ended(t *storage.Tx, f *storage.Fault, key string, now faultSet) {
	f.Over = t.Now
	if f.Event == deliver.AccountCooling {
		f.Over = min(max(f.Until, f.Since), t.Now)
	}
	tell := f.Open && !removed(t, f)
	for other, g := range now {
		if other != key && (g.Name == f.Name && g.Event != deliver.AccountCooling || covers(&g, f)) {
			tell = false
		}
		if f.Event == g.Event && covers(f, &g) && f.Name == wholeProvider(g.Of) { // a part of it lasts, and was reported
			tell, g.Open = false, f.Open
			now[other] = g
		}
	}
	if tell {
		works := " works again"
		if f.Event == deliver.ErrorRate {
			works = " succeed again"
		}
		m := &deliver.Message{Level: deliver.Good, Title: f.Subject + works, Link: o.Link(t, "providers"),
			Text: fmt.Sprintf("The fault began on %s and lasted %s: %s.", o.Clock(t, f.Since), manage.Lasted(f.Over-f.Since),
				deliver.Plain(f.Why, 200)), Data: faultData(f)}
		o.Notify(t, deliver.Recovered, m, func(d *storage.Destination) bool {
			return deliver.Wants(d, f.Event) && threshold(d, f.Event) <= f.Reached
		})
	}
	f.Open, f.Reached = false, 0
}

// covers reports whether a model that is down is a part of what else is down: of its group, or
// of its provider with all groups.
func covers(wide, f *storage.Fault) bool {
	return f.Event == deliver.ModelDown && wide.Event == f.Event &&
		(strings.HasPrefix(f.Name, wide.Name+"/") || wide.Name == wholeProvider(f.Of))
}

// wholeProvider returns the name of the fault of a provider whose accounts are several groups.
func wholeProvider(id string) string { return id + "/*" }

// removed reports whether the account of a fault is deleted or switched off.
func removed(t *storage.Tx, f *storage.Fault) bool {
	if f.Event == deliver.ModelDown || f.Event == deliver.ErrorRate {
		return false
	}
	var c storage.Connection
	return !t.Load(storage.ConnectionPrefix+f.Name, &c) || c.Inactive
}

func faultData(f *storage.Fault) []byte {
	type data struct {
		Event        string `json:"event"`
		ConnectionID string `json:"connectionId,omitempty"`
		Model        string `json:"model,omitempty"`
		Since        int64  `json:"since"`
		Until        int64  `json:"until,omitempty"`
	}
	d := data{Event: f.Event, ConnectionID: f.Name, Since: f.Since, Until: f.Until}
	switch f.Event {
	case deliver.ModelDown:
		d.ConnectionID, d.Model = "", f.Name
	case deliver.ErrorRate:
		d.ConnectionID = ""
	}
	return storage.EncodeJSON(d)
}

// begins returns the message of a fault.
func (o *Object) begins(t *storage.Tx, f *storage.Fault) *deliver.Message {
	m := &deliver.Message{Level: deliver.Bad, Link: o.Link(t, "providers"), Data: faultData(f)}
	todo := ""
	switch f.Event {
	case deliver.AccountRefused:
		m.Title, todo = f.Subject+": the provider refuses the key", "Set a new key, then test the account."
		if f.Why == noKey {
			m.Title, todo = f.Subject+" needs a key", "Set one, then test the account."
		}
	case deliver.AccountCredit:
		m.Title, todo = f.Subject+": no credit left", "Add credit at the provider, then test the account."
	case deliver.AccountSignIn:
		m.Title, todo = f.Subject+" needs a new sign-in", "Sign in again on the page Providers."
	case deliver.AccountCooling:
		m.Level, m.Title = deliver.Warn, f.Subject+" is limited by its provider"
		todo = "It is used again at " + o.Clock(t, f.Until) + ". Add an account to serve more."
	case deliver.ErrorRate:
		m.Title, todo = fmt.Sprintf("%d %% of the requests fail", f.Level), "The page Requests shows why."
		m.Link = o.Link(t, "requests")
	case deliver.ModelDown:
		m.Title, todo = "All accounts of "+f.Subject+" are down", "Calls for it fail until one of them works again."
	}
	m.Text = fmt.Sprintf("%s since %s. %s", f.Why, o.Clock(t, f.Since), todo)
	return m
}

// account is what an account's state means for notifications.
type account struct {
	storage.Connection
	down  bool             // as a whole, until someone acts
	until int64            // the end of a limit of the whole account
	cools []store.Cooldown // of models
}

// faults returns the faults that the accounts have now.
func (o *Object) faults(t *storage.Tx) faultSet {
	all, cools := faultSet{}, t.Cooldowns()
	groups := map[string][]account{}
	var names []string
	for _, c := range t.Connections() {
		if c.Inactive {
			continue
		}
		a := account{Connection: c}
		a.read(t, all, cools)
		group := cmp.Or(c.Data.Prefix, c.Provider)
		if groups[group] == nil {
			names = append(names, group)
		}
		groups[group] = append(groups[group], a)
	}
	for _, name := range names {
		down(t, all, name, groups[name])
	}
	for _, name := range names {
		joinDown(all, groups[name][0].Provider, names, groups)
	}
	return all
}

// joinDown makes one fault of those of the groups of a provider, if there are several and none
// of their accounts can be used.
func joinDown(all faultSet, id string, names []string, groups map[string][]account) {
	var keys, subjects []string
	for _, name := range names {
		if groups[name][0].Provider != id {
			continue
		}
		key := deliver.ModelDown + ":" + name
		if !all.has(key) {
			return
		}
		keys, subjects = append(keys, key), append(subjects, all[key].Subject)
	}
	if len(keys) < 2 {
		return
	}
	f := all[keys[0]]
	for _, key := range keys {
		g := all[key]
		f.Hold = max(f.Hold, g.Hold)
		f.Until = min(cmp.Or(f.Until, g.Until), cmp.Or(g.Until, f.Until))
		delete(all, key)
	}
	f.Name, f.Subject = wholeProvider(id), deliver.Plain(strings.Join(subjects, ", "), 160)
	all[deliver.ModelDown+":"+f.Name] = f
}

// subject returns the name of an account as messages have it.
func subject(c *storage.Connection) string {
	vendor := c.Provider
	if d := provider.Lookup(c.Provider); d != nil {
		vendor = d.Name
	}
	if c.Name == "" || c.Name == vendor {
		return deliver.Plain(vendor, 80)
	}
	return deliver.Plain(vendor, 80) + " account " + strconv.Quote(deliver.Plain(c.Name, 80))
}

// groupName returns the name of a group: the provider's, or of a server or a prefix that of the first account.
func groupName(accounts []account) string {
	c := &accounts[0]
	d := provider.Lookup(c.Provider)
	if own := c.Data.Prefix != "" || d == nil || d.Compatible; own && c.Name != "" {
		if n := len(accounts) - 1; n > 0 {
			return fmt.Sprintf("%s and %d more", deliver.Plain(c.Name, 80), n)
		}
		return deliver.Plain(c.Name, 80)
	}
	if d == nil {
		return deliver.Plain(c.Provider, 80)
	}
	return d.Name
}

// noKey is why an account without a key is refused.
const noKey = "The provider has refused calls without a key"

// read reads the state of an account and adds its faults.
func (a *account) read(t *storage.Tx, all faultSet, cools []store.Cooldown) {
	add := func(event, why string, since, until int64) {
		all[event+":"+a.ID] = storage.Fault{Event: event, Subject: subject(&a.Connection), Name: a.ID, Why: why,
			Since: since, Until: until}
	}
	health, row := t.Health(&a.Connection, cools)
	since := cmp.Or(row.Since, row.At, t.Now)
	switch {
	case a.Status == storage.NeedsReauth:
		a.down = true
		add(deliver.AccountSignIn, "Its sign-in has ended", cmp.Or(a.UpdatedAt, t.Now), 0)
	case health == storage.HealthSealed:
		a.down = true
	case health == storage.HealthKeyRefused:
		a.down = true
		why := "The provider has refused its key"
		if !store.HasCredential(a.Secrets) {
			why = noKey
		}
		add(deliver.AccountRefused, why, since, 0)
	case health == storage.HealthOutOfCredit:
		a.down = true
		add(deliver.AccountCredit, "The provider has refused for lack of credit", since, 0)
	}
	first, last := int64(0), int64(0)
	for _, c := range cools {
		if c.ConnectionID != a.ID || c.Until <= t.Now || c.Reason != store.RateLimited {
			continue
		}
		first, last = min(cmp.Or(first, c.Since), c.Since), max(last, c.Until)
		if c.Model == "" {
			a.until = max(a.until, c.Until)
		} else {
			a.cools = append(a.cools, c)
		}
	}
	if last > 0 && !a.down {
		add(deliver.AccountCooling, "The provider has limited it", first, last)
	}
}

// closed returns until when an account cannot serve a model, whether someone must act first,
// and whether it has the model.
func (a *account) closed(t *storage.Tx, model string) (until int64, hard, serves bool) {
	if a.Data.EnabledModels != nil && model != "" && !slices.Contains(a.Data.EnabledModels, model) {
		return 0, false, false
	}
	if a.down {
		return 0, true, true
	}
	until = a.until
	for _, c := range a.cools {
		if c.Model == model {
			until = max(until, c.Until)
		}
	}
	return until, false, true
}

// down adds the models that no account of a group can serve: all of them, or those with a
// limit of their own.
func down(t *storage.Tx, all faultSet, group string, accounts []account) {
	models := []string{""}
	for _, a := range accounts {
		for _, c := range a.cools {
			if !slices.Contains(models, c.Model) {
				models = append(models, c.Model)
			}
		}
	}
	for _, model := range models {
		f := storage.Fault{Event: deliver.ModelDown, Name: group, Subject: groupName(accounts), Since: t.Now,
			Of: accounts[0].Provider, Why: "No account can be used"}
		if model != "" {
			f.Name = group + "/" + model
			f.Subject = deliver.Plain(f.Name, 160)
		}
		open := false
		for i := range accounts {
			until, hard, serves := accounts[i].closed(t, model)
			open = open || serves && !hard && until <= t.Now
			if serves && !hard {
				f.Hold = downHold
				f.Until = min(cmp.Or(f.Until, until), until)
			}
		}
		if open {
			continue
		}
		all[f.Event+":"+f.Name] = f
		if model == "" {
			return
		}
	}
}
