package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/objects"
	"weir/pkg/api"
	"weir/pkg/auth/session"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/snapshot"
)

// failing is a storage of which the access number at fails, and with lasts every later one.
type failing struct {
	*objects.Storage
	at    int
	lasts bool

	accesses    int
	read, wrote bool     // a read or a write has failed
	after       []string // writes after a failed read
	out         *outside
}

// fails counts an access and reports whether it fails.
func (f *failing) fails(kind *bool) bool {
	f.accesses++
	if f.accesses != f.at && !(f.lasts && f.at > 0 && f.accesses > f.at) {
		return false
	}
	if !f.read && !f.wrote {
		f.out.before = len(f.out.all())
	}
	*kind = true
	return true
}

func (f *failing) Get(key string) ([]byte, error) {
	if f.fails(&f.read) {
		return nil, objects.ErrFault
	}
	return f.Storage.Get(key)
}

func (f *failing) List(prefix, start string, limit int) ([]storage.Row, error) {
	if f.fails(&f.read) {
		return nil, objects.ErrFault
	}
	return f.Storage.List(prefix, start, limit)
}

func (f *failing) Write(rows []storage.Row, alarm int64) error {
	if f.fails(&f.wrote) {
		return objects.ErrFault
	}
	if len(rows) > 0 && f.read {
		f.after = append(f.after, rows[0].Key)
	}
	return f.Storage.Write(rows, alarm)
}

// outside is all that an object can call.
type outside struct {
	up     *fake.Upstream
	kv     *fake.KV
	script *objects.Script
	before int // calls until an access of the storage has failed
	seeds  int // writes of a document to KV by the test
}

// all returns all calls, those of each kind in their order.
func (o *outside) all() (calls []string) {
	for _, s := range o.up.Seen {
		calls = append(calls, s.Method+" "+s.URL)
	}
	return slices.Concat(calls, o.kv.Reads(), o.kv.Writes(), o.script.Calls)
}

// faultCase is one call of an object.
type faultCase struct {
	name, machine, op, body string
	rows                    map[string][]byte
	later                   time.Duration // of the call
	status                  int           // without a failure
}

// faultWorld is a machine with rows of every kind, and a registry.
type faultWorld struct {
	*world
	machine, registry map[string][]byte
	handed            []byte // its buffered reports
}

func newFaultWorld(t *testing.T) (*faultWorld, []faultCase) {
	w := newWorld(t)
	w.WithFlows()
	firstKey := w.Create()
	keyOf := func(text string) string {
		k, _ := rpc.ParseKey(text)
		return snapshot.New(w.Replica()).FindKey(k.Digest, nil).ID
	}
	conn := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789-0123456789"}`)
	other := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789-abcdefghij"}`)
	account := w.OAuth()
	budget := w.budget(`{"name":"team","unit":"requests","limit":100,"window":"total","webhookUrl":"https://hooks.example.com/a"}`)
	hook := `{"kind":"webhook","settings":{"url":"https://hooks.example.com/b?sig=1"}}`
	target := w.OK("POST", "/api/destinations", hook).Get("id").Str
	combo := w.OK("POST", "/api/combos", `{"name":"fast","models":["openai/gpt-4o"]}`).Get("id").Str
	key := w.OK("POST", "/api/keys", `{"name":"manager","scopes":["manage"]}`).Get("apiKey").Str
	w.OK("PUT", "/api/models/alias", `{"alias":"nick","model":"openai/gpt-4o"}`)
	w.OK("POST", "/api/models/custom", `{"providerAlias":"openai","id":"own-model"}`)
	w.OK("POST", "/api/models/disabled", `{"providerAlias":"openai","ids":["gpt-4"]}`)
	w.OK("PATCH", "/api/settings", `{"capturePercent":100,"publicStatus":"models"}`)
	lease := w.Lease()
	state := w.BeginSignIn(`{}`, "")
	w.Want(200, "capture.put", `{"id":"req_1"}`+"\nv1.sealed")
	job := `{"id":"job_1","kind":"video","connectionId":"` + conn + `","requestId":"req_1","unbilled":{"connectionId":"` + conn + `","requests":1,"calls":1}}`
	w.Want(200, "job.put", job)
	w.Want(200, "idem.begin", `{"key":"k1","digest":"d"}`)
	w.Want(200, "session.open", `{"digest":"`+inprocess.Digest(1)+`","keyId":"`+keyOf(key)+`"}`)
	row := `{"keyId":"` + keyOf(firstKey) + `","connectionId":"` + conn + `","model":"openai/gpt-4o","requests":1,"calls":1}`
	report := `{"budgets":{"holder":"a","asks":[{"budget":"` + budget + `","used":%d,"need":1,"own":1}]},"usage":[` + row + `],
		"cooldowns":[{"connectionId":"` + conn + `","reason":"rate_limited","since":1799999999000,"until":1800000090000}],
		"errors":[{"connectionId":"` + conn + `","text":"busy"}],"cleared":[{"connectionId":"` + other + `","at":1800000000000}],
		"refusals":[{"connectionId":"` + conn + `","field":"top_k","until":1800009000000}],
		"quotas":[{"connectionId":"` + conn + `","moved":true,"windows":[]}],
		"requests":[{"id":"req_1","keyId":"` + keyOf(firstKey) + `","connectionId":"` + conn + `","status":200,"at":1800000000000}]}`
	w.Want(200, "report", fmt.Sprintf(report, 60))
	deleted := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789-klmnopqrst"}`)
	if status, a := w.API("DELETE", "/api/providers/"+deleted, ""); status != 200 {
		t.Fatal(a.Raw)
	}
	w.Want(200, "report", fmt.Sprintf(report, 1))
	for id, s := range map[string]string{mid: "active", "newmachine000001": "creating"} {
		if status, a := w.At(rpc.RegistryID, "put", `{"machineId":"`+id+`","state":"`+s+`"}`); status != 200 {
			t.Fatal(a.Raw)
		}
	}
	w.opened(1)
	w.device(5, "a")
	w.device(6, "a")
	w.At(rpc.RegistryID, "device.decide", `{"digest":"`+inprocess.Digest(6)+`","machineId":"m000000000000001"}`)
	if status, a := w.At(rpc.RegistryID, "session.failed", `{"from":"`+strings.Repeat("a", 32)+`"}`); status != 200 {
		t.Fatal(a.Raw)
	}
	who, grants := rpc.PersonSignIn{Identity: &ann, Roles: editors}, rpc.PersonSet{ID: ann.ID(), MachineID: mid, Grant: editors[mid]}
	if status, _ := w.signIn(9, who); status != 200 || w.invite(1, rpc.InviteCreate{Role: people.Member}) != 200 {
		t.Fatal("no person, or no invitation")
	}
	w.invite(3, rpc.InviteCreate{Role: people.Member})
	if status, _ := w.signIn(11, rpc.PersonSignIn{Name: "Cyd", Invite: by(3), Subject: "c",
		NewPasskey: &rpc.Passkey{Digest: inprocess.Digest(51)}}); status != 200 {
		t.Fatal("no passkey")
	}
	prices := `{"v":1,"source":"https://prices.example.com","fetchedAt":1}`
	if status, a := w.At(rpc.RegistryID, "prices.put", prices); status != 200 {
		t.Fatal(a.Raw)
	}
	for _, id := range []string{mid, rpc.RegistryID} {
		w.Loc.Storage(id).Flush()
	}
	f := &faultWorld{world: w, machine: w.Loc.Storage(mid).Dump(), registry: w.Loc.Storage(rpc.RegistryID).Dump()}
	f.handed = w.obj.HandOver()
	if len(f.handed) == 0 {
		t.Fatal("nothing is buffered")
	}

	var cases []faultCase
	add := func(status int, op, body string) *faultCase {
		cases = append(cases, faultCase{name: op, machine: mid, op: op, body: body, rows: f.machine, status: status})
		return &cases[len(cases)-1]
	}
	named := func(name string, c *faultCase) *faultCase { c.name += " " + name; return c }
	add(200, "snapshot", `{}`)
	named("to confirm", add(200, "snapshot", `{"confirm":true}`))
	add(200, "report", fmt.Sprintf(report, 40))
	named("of another hour", add(200, "report", fmt.Sprintf(report, 40))).later = 2 * time.Hour
	add(200, "budget.take", `{"holder":"b","asks":[{"budget":"`+budget+`","need":1,"own":1}]}`)
	add(200, "refresh", `{"connectionId":"`+account+`","tokenGeneration":1}`)
	add(200, "job.put", strings.Replace(job, "job_1", "job_2", 1))
	named("again", add(200, "job.put", job))
	add(200, "job.get", `{"id":"job_1"}`)
	add(200, "job.bill", `{"id":"job_1","usage":`+row+`}`)
	add(200, "idem.begin", `{"key":"k2","digest":"d"}`)
	named("again", add(200, "idem.begin", `{"key":"k1","digest":"d"}`))
	add(200, "idem.end", `{"key":"k1","digest":"d","status":200}`)
	seed := `{"doc":{"connections":[{"id":"seeded","provider":"openai","apiKey":"sk-0123456789-uvwxyzabcd"}]}}`
	named("refused", add(422, "adopt", seed))
	add(200, "adopt", seed).rows = map[string][]byte{}
	named("refused of a new machine", add(422, "adopt", `{"doc":{"connections":1}}`)).rows = map[string][]byte{}
	add(201, "create", `{"name":"demo","mutationId":"m1"}`).rows = map[string][]byte{}
	add(200, "rename", `{"name":"new"}`)
	add(204, "delete", `{}`)
	named("at once", add(204, "delete", `{"now":true}`))
	gone := maps.Clone(f.machine)
	gone["meta"] = []byte(fmt.Sprintf(`{"deleted":true,"deletedAt":%d,`, w.Clock.Now().UnixMilli()) + string(gone["meta"][1:]))
	add(200, "restore", ``).rows = gone
	named("at once, later", add(204, "delete", `{"now":true}`)).rows = gone
	erased := named("of a deleted machine", add(0, "alarm", ""))
	erased.rows, erased.later = gone, 8*24*time.Hour
	add(200, "probe", `{"connectionId":"`+conn+`"}`)
	add(200, "tested", `{"connectionId":"`+conn+`"}`)
	add(200, "exists", `{}`)
	add(200, "tick", `{}`)
	add(200, "flush", ``)
	add(200, "metrics", `{}`)
	named("days later", add(200, "metrics", `{"keys":true}`)).later = 72 * time.Hour
	add(200, "session.open", `{"digest":"`+inprocess.Digest(2)+`","keyId":"`+keyOf(key)+`"}`)
	add(200, "session.check", `{"digest":"`+inprocess.Digest(1)+`"}`).later = 10 * time.Minute
	add(200, "session.end", `{"digest":"`+inprocess.Digest(1)+`","all":true}`)
	callback, _ := json.Marshal(rpc.CallbackQuery{Session: inprocess.Ticket, RedirectURI: inprocess.Redirect, Query: "code=code-0123456789&state=" + state})
	add(200, "oauth.callback", string(callback))
	claim, _ := json.Marshal(rpc.ClaimLease{Digest: rpc.KeyDigest(lease), Tool: "codex"})
	add(200, "lease.claim", string(claim))
	add(200, "status", ``)
	add(200, "key.usage", `{"keyId":"`+keyOf(firstKey)+`"}`)
	add(200, "key.request", `{"keyId":"`+keyOf(firstKey)+`","id":"req_1"}`)
	add(200, "capture.put", `{"id":"req_2"}`+"\nv1.sealed")
	add(0, "alarm", "").later = 2 * time.Hour

	// The input of management calls.
	doc := `{"connections":[{"id":"imported","provider":"openai","apiKey":"sk-0123456789-uvwxyzabcd"}]}`
	needs := map[string]struct {
		param, query, body string
		status             int
	}{
		"POST /api/providers":                   {body: `{"provider":"openai","apiKey":"sk-0123456789-uvwxyzabcd"}`},
		"GET /api/providers/{id}":               {param: conn},
		"PUT /api/providers/{id}":               {param: conn, body: `{"name":"other"}`},
		"DELETE /api/providers/{id}":            {param: conn},
		"POST /api/providers/{id}/restore":      {param: deleted},
		"POST /api/oauth/{provider}/authorize":  {param: oauthID, body: `{}`},
		"POST /api/oauth/{provider}/device":     {param: oauthID, body: `{}`, status: 503},
		"POST /api/oauth/{provider}/poll":       {param: oauthID, status: 400},
		"POST /api/oauth/{provider}/cancel":     {param: oauthID},
		"POST /api/combos":                      {body: `{"name":"new","models":["openai/gpt-4o"]}`},
		"GET /api/combos/{id}":                  {param: combo},
		"PUT /api/combos/{id}":                  {param: combo, body: `{"name":"new"}`},
		"DELETE /api/combos/{id}":               {param: combo},
		"POST /api/budgets":                     {body: `{"name":"new","unit":"requests","limit":1,"window":"day"}`},
		"GET /api/budgets/{id}":                 {param: budget},
		"PUT /api/budgets/{id}":                 {param: budget, body: `{"limit":200}`},
		"DELETE /api/budgets/{id}":              {param: budget},
		"POST /api/destinations":                {body: hook},
		"GET /api/destinations/{id}":            {param: target},
		"PUT /api/destinations/{id}":            {param: target, body: `{"name":"new"}`},
		"DELETE /api/destinations/{id}":         {param: target},
		"GET /api/destinations/{id}/deliveries": {param: target},
		"POST /api/destinations/{id}/test":      {param: target},
		"POST /api/keys":                        {body: `{"name":"new","models":["openai/gpt-4o"]}`},
		"GET /api/keys/{id}":                    {param: keyOf(key)},
		"PUT /api/keys/{id}":                    {param: keyOf(key), body: `{"name":"new"}`},
		"DELETE /api/keys/{id}":                 {param: keyOf(key)},
		"POST /api/keys/{id}/rotate":            {param: keyOf(key)},
		"GET /api/keys/{id}/usage":              {param: keyOf(firstKey)},
		"GET /api/keys/{id}/networks":           {param: keyOf(firstKey)},
		"PUT /api/people/{id}":                  {param: ann.ID(), body: `{"role":"member","template":{"keys":1}}`},
		"DELETE /api/people/{id}":               {param: ann.ID()},
		"POST /api/invitations":                 {body: `{"role":"viewer"}`},
		"DELETE /api/invitations/{id}":          {param: by(1)[:inviteID]},
		"POST /api/setup":                       {body: `{"tool":"codex","model":"openai/gpt-4o-mini"}`},
		"POST /api/device/{code}":               {body: `{"approve":true,"digest":"` + inprocess.Digest(5) + `","name":"laptop"}`},
		"PUT /api/models/alias":                 {body: `{"alias":"new","model":"openai/gpt-4o"}`},
		"DELETE /api/models/alias":              {query: "alias=nick"},
		"POST /api/models/custom":               {body: `{"providerAlias":"openai","id":"new-model"}`},
		"DELETE /api/models/custom":             {query: "providerAlias=openai&id=own-model"},
		"POST /api/models/disabled":             {body: `{"providerAlias":"openai","ids":["gpt-4o"]}`},
		"DELETE /api/models/disabled":           {query: "providerAlias=openai&id=gpt-4"},
		"PATCH /api/settings":                   {body: `{"timeZone":"UTC"}`},
		"GET /api/requests/{id}":                {param: "req_1"},
		"GET /api/captures/{id}":                {param: "req_1", status: 503},
		"DELETE /api/captures/{id}":             {param: "req_1"},
		"POST /api/export":                      {body: `{"passphrase":"a long passphrase"}`},
		"POST /api/import":                      {body: `{"document":` + doc + `}`},
		"POST /api/compare": {body: `{"accounts":{"` + conn + `":{"apiKey":"sk-another"}},
			"destinations":{"` + target + `":{"url":"https://other.example"}}}`},
	}
	routes := 0
	for _, r := range api.Routes(&api.Handlers{Sessions: &session.Sessions{}}) {
		for _, m := range r.Methods {
			name := m.Name + " " + r.Pattern
			n := needs[name]
			e := rpc.ManageCall{Method: m.Name, Route: r.Pattern, Query: map[string]string{}, MutationID: "m2", Session: inprocess.Ticket, RedirectURI: inprocess.Redirect}
			if n.param != "" {
				e.Params = []string{n.param}
			}
			if n.body != "" {
				e.Body = json.RawMessage(n.body)
			}
			for _, pair := range strings.Split(n.query, "&") {
				if k, v, ok := strings.Cut(pair, "="); ok {
					e.Query[k] = v
				}
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			c := faultCase{name: "manage " + name, machine: mid, op: "manage", body: string(raw), rows: f.machine, status: 200}
			if n.status != 0 {
				c.status = n.status
			}
			if _, answer, _ := f.run(&c, 0, false); isFailure(gjson.ParseBytes(answer), "not_found") && n.param == "" {
				continue // the gateway alone serves it
			}
			routes++
			cases = append(cases, c)
		}
	}
	if routes < 50 {
		t.Fatalf("%d management calls", routes)
	}
	onRegistry := func(status int, op, body string) {
		c := add(status, op, body)
		c.name, c.machine, c.rows = "registry "+op, rpc.RegistryID, f.registry
	}
	onRegistry(200, "put", `{"machineId":"`+mid+`","state":"deleting"}`)
	onRegistry(200, "list", `{}`)
	onRegistry(200, "tick", `{}`)
	onRegistry(200, "prices.put", prices)
	onRegistry(200, "prices.get", ``)
	onRegistry(200, "feeds.take", `{"providers":["openai"]}`)
	onRegistry(200, "feeds.put", `{"feeds":[{"provider":"openai","indicator":"none"}]}`)
	onRegistry(200, "session.open", `{"digest":"`+inprocess.Digest(2)+`","bound":"b"}`)
	onRegistry(200, "session.check", `{"digest":"`+inprocess.Digest(1)+`","bound":"b"}`)
	onRegistry(200, "session.end", `{"digest":"`+inprocess.Digest(1)+`","all":true}`)
	onRegistry(200, "notice", `{"event":"prices.stale","title":"a","text":"b"}`)
	onRegistry(200, "idp.put", `{"id":"`+strings.Repeat("a", 20)+`","name":"Acme"}`)
	onRegistry(200, "idp.list", `{}`)
	onRegistry(404, "idp.delete", `{"id":"`+strings.Repeat("a", 20)+`"}`)
	onRegistry(200, "signIn.spend", `{"digest":"`+strings.Repeat("a", 64)+`","until":1900000000}`)
	onRegistry(200, "signIn.failed", `{"reason":"state_used"}`)
	onRegistry(200, "signIn.list", `{}`)
	onRegistry(200, "role.refused", `{"person":"p_00000000000000000000000000000001","machineId":"`+mid+`","route":"GET /api/people"}`)
	onRegistry(403, "person.seen", `{"identity":{"issuer":"https://id.example","subject":"eve"}}`)
	onRegistry(200, "session.failed", `{"from":"`+strings.Repeat("a", 32)+`"}`)
	onRegistry(200, "device.start", `{"digest":"`+inprocess.Digest(7)+`","name":"laptop","from":"b"}`)
	onRegistry(404, "device.find", `{"who":"operator","userCode":"BBBBBBBB"}`)
	onRegistry(200, "device.decide", `{"digest":"`+inprocess.Digest(5)+`","machineId":""}`)
	onRegistry(200, "device.poll", `{"digest":"`+inprocess.Digest(6)+`"}`)
	who.Session.Digest, who.Invite = inprocess.Digest(10), by(1)
	onRegistry(200, "person.signIn", string(storage.Encode(who)))
	onRegistry(200, "person.end", `{"id":"`+ann.ID()+`"}`)
	onRegistry(200, "person.list", `{"machineId":"`+mid+`"}`)
	onRegistry(200, "person.names", `{"ids":["p_00000000000000000000000000000001"]}`)
	grants.Grant.Role = people.None
	onRegistry(200, "person.set", string(storage.Encode(grants)))
	onRegistry(200, "person.export", `{"machineId":"`+mid+`"}`)
	onRegistry(200, "person.import", `{"machineId":"`+mid+`","people":[{"id":"`+ann.ID()+`","issuer":"https://idp.example","role":"viewer"},
		{"id":"p_00000000000000000000000000000001","issuer":"https://idp.example","name":"New","role":"none"}]}`)
	onRegistry(200, "invite.create", `{"digest":"`+by(2)+`","machineId":"`+mid+`","role":"member"}`)
	onRegistry(200, "invite.show", `{"digest":"`+by(1)+`"}`)
	onRegistry(200, "invite.delete", `{"machineId":"`+mid+`","id":"`+by(1)[:inviteID]+`"}`)
	own := `{"person":"` + ownID("c") + `","id":"` + inprocess.Digest(51) + `"}`
	onRegistry(200, "passkey.begin", own)
	onRegistry(200, "passkey.find", `{"digest":"`+inprocess.Digest(51)+`"}`)
	onRegistry(200, "passkey.list", own)
	onRegistry(200, "passkey.rename", own)
	onRegistry(200, "passkey.add", `{"person":"`+ownID("c")+`","digest":"`+inprocess.Digest(52)+`"}`)
	onRegistry(409, "passkey.delete", own)
	covered := map[string]bool{}
	for _, c := range cases {
		covered[c.machine+" "+c.op] = true
	}
	for _, op := range ops {
		if !covered[mid+" "+op.name] {
			t.Errorf("no case calls %s", op.name)
		}
	}
	for _, op := range registryOps {
		if !covered[rpc.RegistryID+" "+op.name] {
			t.Errorf("no case calls %s of the registry", op.name)
		}
	}
	return f, cases
}

// ran is an object after a call, and what was around it.
type ran struct {
	obj *Object
	st  *failing
	out *outside
	err error // of an alarm
}

// program returns a program that has just started. It knows what the machine's has been given.
func (w *world) program(out *outside, clock *fake.Clock) *Object {
	o := &Object{KV: out.kv}
	o.KeySecret, o.Keyring, o.OAuth, o.SignRS256 = w.obj.KeySecret, w.obj.Keyring, w.obj.OAuth, w.obj.SignRS256
	o.Objects, o.Do, o.Pause, o.Now = out.script, out.up, clock, clock.Now
	return o
}

// run runs a call of a program that has just taken over the buffered reports. The storage
// fails at an access, 0 for none.
func (f *faultWorld) run(c *faultCase, at int, lasts bool) (status int, answer []byte, r *ran) {
	st := &failing{Storage: objects.NewStorage(), at: at, lasts: lasts}
	maps.Copy(st.Rows, c.rows)
	up := &inprocess.IDP{Refresh: f.IDP.Refresh}
	kv := fake.NewKV()
	if c.op == "adopt" {
		kv.Put(f.Ctx, kvKey(c.machine), []byte(gjson.Get(c.body, "doc").Raw))
	}
	out := &outside{kv: kv, up: &fake.Upstream{Answer: up.Reply}, script: objects.Constant(200, `{}`)}
	out.seeds = len(out.all())
	st.out = out
	clock := fake.NewClock(f.Clock.Now().Add(c.later))
	o := f.program(out, clock)
	o.TakeOver(f.handed)
	r = &ran{obj: o, st: st, out: out}
	status, answer = f.again(c, r)
	return status, answer, r
}

// again repeats the call.
func (f *faultWorld) again(c *faultCase, r *ran) (status int, answer []byte) {
	r.obj.Rand = rand.NewChaCha8([32]byte{2})
	if c.op == "alarm" {
		r.err = r.obj.Alarm(f.Ctx, r.st, c.machine)
	} else {
		status, answer = r.obj.Handle(f.Ctx, r.st, c.machine, c.op, []byte(c.body))
	}
	r.st.Flush()
	return status, answer
}

// buffered returns the machine's buffered reports.
func (r *ran) buffered() string {
	e := r.obj.buffers.machines[mid]
	if e == nil || e.pending == nil {
		return ""
	}
	return string(storage.Encode(e.pending))
}

// A failed read must not look like a missing row: nothing that follows from one leaves the
// object, is stored or is remembered, whatever row of whatever call it is. A failed write
// is answered as a failure, and nothing is called that depended on it.
func TestStorageFailureStopsTheCall(t *testing.T) {
	f, cases := newFaultWorld(t)
	calls, reads := 0, 0
	for i := range cases {
		c := &cases[i]
		cleanStatus, cleanAnswer, clean := f.run(c, 0, false)
		if cleanStatus != c.status || clean.err != nil {
			t.Errorf("%s: got %d %.300s, %v, want %d", c.name, cleanStatus, cleanAnswer, clean.err, c.status)
		}
		calls += len(clean.out.all()) - clean.out.seeds
		for _, lasts := range []bool{false, true} {
			for at := 1; at <= clean.st.accesses; at++ {
				name := fmt.Sprintf("%s: access %d", c.name, at)
				status, answer, r := f.run(c, at, lasts)
				st := r.st
				if st.read {
					reads++
				}
				answered := gjson.ParseBytes(answer)
				// New tokens and reports beside earlier ones stay in memory.
				kept := c.op == "refresh" && (st.wrote || answered.Get("unsaved").Bool()) && len(r.out.up.Seen) == 1 ||
					c.op == "report" && gjson.Get(r.buffered(), "size").Int() > gjson.GetBytes(f.handed, mid+".size").Int()
				switch {
				case c.op == "alarm":
					if st.read && r.err == nil {
						t.Errorf("%s: the alarm has not failed", name)
					}
				case (st.read || st.wrote) && !kept && (status != 503 || !isFailure(answered, "storage_failed")):
					t.Errorf("%s: got %d %.200s", name, status, answer)
				}
				if len(st.after) > 0 {
					t.Errorf("%s: after the failed read: %q", name, st.after)
				}
				if all := r.out.all(); (st.read || st.wrote && c.op != "alarm") && len(all) > r.out.before {
					t.Errorf("%s: %d calls before the failure: %q", name, r.out.before, all)
				}
				if kept || !st.read || !maps.EqualFunc(st.Rows, c.rows, slices.Equal[[]byte]) {
					continue
				}
				// Nothing was stored, so that the same call leads to what it would have led to.
				if c.machine == mid && r.buffered() != string(storage.Encode(json.RawMessage(gjson.GetBytes(f.handed, mid).Raw))) {
					t.Errorf("%s: buffered: %s", name, r.buffered())
				}
				st.at = 0
				made := len(r.out.all())
				if s, a := f.again(c, r); s != cleanStatus || len(r.out.all()) != made+len(clean.out.all())-clean.out.seeds ||
					!slices.Equal(slices.Sorted(maps.Keys(st.Rows)), slices.Sorted(maps.Keys(clean.st.Rows))) ||
					string(st.Rows["meta"]) != string(clean.st.Rows["meta"]) {
					t.Errorf("%s: repeated: got %d %.200s, %q, want %d, %q", name, s, a, r.out.all(), cleanStatus, clean.out.all())
				}
			}
		}
	}
	if calls < 12 || reads < 1000 {
		t.Errorf("%d calls out, %d failed reads: the cases prove little", calls, reads)
	}
}

// The id of an own server ends with random digits.
func TestSubjectNamesNoIDOfAnOwnServer(t *testing.T) {
	for of, want := range map[string]string{
		"openai-compatible-0123abcd": `OpenAI-compatible account "fake"`, "anthropic-compatible-0123abcd": `Anthropic-compatible account "fake"`,
		"openai": `OpenAI account "fake"`,
	} {
		var c storage.Connection
		c.Provider, c.Name = of, "fake"
		if got := subject(&c); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
