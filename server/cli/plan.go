package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// ExitError ends the program with a code and without a text.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// fileSection is a section of weir.yaml whose rows are created, changed and deleted.
type fileSection struct {
	name, what, path string
	nameOf           func(item map[string]any) string
	// body returns the fields of the API of a row of the file. row is the stored one, which
	// may be missing.
	body func(p *planner, item map[string]any, row gjson.Result) (map[string]any, error)
	// secrets returns the references of a row to its secrets, by their fields.
	secrets func(item map[string]any) map[string]any
	whole   bool // a change sends all fields
}

// label returns what people call a row.
func (s *fileSection) label(name string, row gjson.Result) string {
	if s.name == "people" {
		return cmp.Or(str(row, "name"), name)
	}
	return name
}

func byID(item map[string]any) string { id, _ := item["id"].(string); return id }

func byName(item map[string]any) string { name, _ := item["name"].(string); return name }

// fileSections are in the order in which they are applied; settings come last, for they name
// models and combos.
var fileSections = []fileSection{
	{"accounts", "account", "/api/providers", byName, (*planner).accountBody, accountSecrets, false},
	{"models", "model", "/api/models/custom", modelName, nil, nil, true},
	{"combos", "combo", "/api/combos", byName, nil, nil, false},
	{"keys", "key", "/api/keys", byName, (*planner).keyBody, nil, false},
	{"budgets", "budget", "/api/budgets", byName, (*planner).budgetBody, nil, false},
	{"destinations", "destination", "/api/destinations", byName, (*planner).destinationBody, destinationSecrets, false},
	{"identityProviders", "identity provider", "/api/identity-providers", byName, (*planner).identityBody, identitySecrets, true},
	{"people", "person", "/api/people", byID, (*planner).personBody, nil, true},
}

// modelName returns the identity of a custom model, of a row of the file or of the API.
func modelName(m map[string]any) string {
	kind, _ := m["type"].(string)
	if kind == "" {
		kind = "llm"
	}
	return fmt.Sprint(m["providerAlias"], "/", m["id"], " ", kind)
}

// step is a call that makes a machine more like a file.
type step struct {
	Action string   `json:"action"` // create, change or delete
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Fields []string `json:"fields,omitempty"` // that change

	method, path string
	body         map[string]any
	old          gjson.Result // that the body changes
	etag         string       // of the row, "" if that of the collection holds
	collection   string       // path
	key          string       // name of the key whose id is the budget's keyId once it exists
	frees        bool         // it deletes an account whose prefix another step takes
}

// planner compares a file with a machine.
type planner struct {
	*app
	ctx      context.Context
	client   *client
	values   map[string]any
	prune    bool
	only     Owned             // with prune, the rows that may be deleted; nil for all
	owned    Owned             // rows of the machine that the file names
	secrets  bool              // send all secrets again
	texts    map[string]string // secrets that were resolved, by section, row and field
	equals   map[string]bool   // those that the machine has
	keyIDs   map[string]string // by name
	etags    map[string]string // of the collections, by path
	machines []gjson.Result    // of the gateway, once a rule names one
	steps    []step
	equal    int
}

// newPlan compares the file of a command with the machine.
func (a *app) newPlan(ctx context.Context, in *input) (*planner, error) {
	name := "weir.yaml"
	if len(in.args) > 0 {
		name = in.args[0]
	}
	raw, err := a.readFile(name)
	if errors.Is(err, fs.ErrNotExist) && len(in.args) == 0 {
		return nil, errors.New("there is no weir.yaml in this folder; weir pull weir.yaml writes one of what the machine has now, or name another file, as in weir plan FILE")
	}
	if err != nil {
		return nil, err
	}
	p := &planner{app: a, ctx: ctx, prune: in.values["prune"] != "", secrets: in.values["secrets"] != ""}
	if p.values, err = readFileText(raw); err == nil {
		err = a.unset(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if a.machine == "" {
		a.machine, _ = p.values["machine"].(string)
	}
	if p.client, err = a.open(ctx); err != nil {
		return nil, err
	}
	if err := p.plan(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// plan reads the machine and notes the steps.
func (p *planner) plan() error {
	p.keyIDs, p.etags, p.texts, p.equals = map[string]string{}, map[string]string{}, map[string]string{}, map[string]bool{}
	p.owned, p.steps, p.equal = Owned{}, nil, 0
	for _, s := range fileSections {
		if err := p.section(s); err != nil {
			return err
		}
	}
	for _, s := range []struct{ section, path string }{{"models", "/api/models/custom"}, {"disabled", "/api/models/disabled"},
		{"aliases", "/api/models/alias"}, {"settings", "/api/settings"}} {
		if _, owned := p.values[s.section]; owned {
			p.owned[s.path] = []string{All}
		}
	}
	if err := errors.Join(p.disabled(), p.aliases(), p.settings()); err != nil {
		return err
	}
	p.deleteLast()
	return nil
}

// deleteLast moves deletions to the end, in reverse: a key takes its budgets with it. An account that another one
// takes the place of is deleted first: two accounts with the same prefix are refused.
func (p *planner) deleteLast() {
	var first, stay, gone []step
	for _, s := range p.steps {
		switch {
		case s.frees:
			first = append(first, s)
		case s.Action == "delete":
			gone = append(gone, s)
		default:
			stay = append(stay, s)
		}
	}
	slices.Reverse(gone)
	p.steps = slices.Concat(first, stay, gone)
}

// takesPrefix reports whether an account of the file has the prefix of a stored one.
func (p *planner) takesPrefix(row gjson.Result) bool {
	prefix := row.Get("providerSpecificData.prefix").String()
	return prefix != "" && slices.ContainsFunc(itemsOf(p.values, "accounts"), func(item map[string]any) bool {
		options, _ := item["options"].(map[string]any)
		return options["prefix"] == prefix
	})
}

// get reads a collection and its ETag.
func (p *planner) get(path string) (gjson.Result, error) {
	raw, etag, err := p.client.exchange(p.ctx, "GET", path, "", nil)
	p.etags[path] = etag
	return gjson.ParseBytes(raw), err
}

// section plans the rows of a section. Keys are read for budgets too.
func (p *planner) section(s fileSection) error {
	_, owned := p.values[s.name]
	if !owned && s.name != "keys" {
		return nil
	}
	if s.name == "identityProviders" && !p.client.operator() {
		return errors.New("identityProviders: the operator token is needed to set them; leave the section out without it")
	}
	list, err := p.get(s.path)
	if err != nil {
		return err
	}
	stored := map[string]gjson.Result{}
	for _, row := range array(list, "data") {
		fields, _ := row.Value().(map[string]any)
		name := s.nameOf(fields)
		if _, twice := stored[name]; twice && p.names(s.name, s.nameOf, name) {
			return fmt.Errorf("the machine has several %ss of the name %q; rename or delete some", s.what, name)
		}
		stored[name] = row
		if s.name == "keys" {
			p.keyIDs[name] = str(row, "id")
		}
	}
	if s.secrets != nil {
		if err := p.compare(s, stored); err != nil {
			return err
		}
	}
	for _, item := range itemsOf(p.values, s.name) {
		name := s.nameOf(item)
		row := stored[name]
		delete(stored, name)
		if row.Exists() {
			p.owned[s.path] = append(p.owned[s.path], str(row, "id"))
		}
		if err := p.row(s, name, item, row); err != nil {
			return fmt.Errorf("%s %s: %w", s.what, name, err)
		}
	}
	if !p.prune || !owned {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		row := stored[name]
		id := str(row, "id")
		if p.only != nil && s.name != "models" && !slices.Contains(p.only[s.path], id) || isDerived(row) {
			continue
		}
		if end := str(row, "last4"); s.name == "keys" && end != "" && strings.HasSuffix(p.client.token, end) {
			continue // that of this command
		}
		d := step{Action: "delete", Kind: s.what, Name: s.label(name, row), method: "DELETE", path: s.path + "/" + url.PathEscape(id),
			etag: generation(row), collection: s.path}
		if s.name == "models" {
			q := url.Values{"providerAlias": {str(row, "providerAlias")}, "id": {id}, "type": {str(row, "type")}}
			d.path, d.etag = s.path+"?"+q.Encode(), ""
		}
		d.frees = s.name == "accounts" && p.takesPrefix(row)
		p.steps = append(p.steps, d)
	}
	return nil
}

// accountSecrets returns the secrets of an account.
func accountSecrets(item map[string]any) map[string]any {
	out := map[string]any{}
	for _, f := range credentials {
		if ref := item[f.name]; ref != nil {
			out[f.name] = ref
		}
	}
	return out
}

// destinationSecrets returns the secrets of a destination: settings that are references.
func destinationSecrets(item map[string]any) map[string]any {
	out := map[string]any{}
	settings, _ := item["settings"].(map[string]any)
	for name, v := range settings {
		if _, secret := v.(map[string]any); secret {
			out[name] = v
		}
	}
	return out
}

// compare resolves the secrets of a section and notes those that the machine has already.
func (p *planner) compare(s fileSection, stored map[string]gjson.Result) error {
	rows := map[string]map[string]string{}
	names := map[string]string{}
	for _, item := range itemsOf(p.values, s.name) {
		name := s.nameOf(item)
		row := stored[name]
		id := str(row, "id")
		for field, ref := range s.secrets(item) {
			text, err := p.resolve(p.ctx, field, ref)
			if err != nil {
				return fmt.Errorf("%s %s: %w", s.what, name, err)
			}
			p.texts[s.name+"/"+name+"/"+field] = text
			if names[id] = name; is(row, "hasSecret") || strings.Contains(row.Get("secrets").Raw, `"`+field+`"`) {
				if rows[id] == nil {
					rows[id] = map[string]string{}
				}
				rows[id][field] = text
			}
		}
	}
	if len(rows) == 0 || p.secrets {
		return nil
	}
	raw, _, err := p.client.exchange(p.ctx, "POST", "/api/compare", "", map[string]any{s.name: rows})
	if err != nil {
		return fmt.Errorf("compare the secrets of %s: %w", s.name, err)
	}
	for id, fields := range gjson.GetBytes(raw, s.name).Map() {
		for field, equal := range fields.Map() {
			p.equals[s.name+"/"+names[id]+"/"+field] = equal.Bool()
		}
	}
	return nil
}

// secret returns a secret of a row that compare has resolved, and whether the machine has it.
func (p *planner) secret(section, name, field string) (text string, equal bool) {
	key := section + "/" + name + "/" + field
	return p.texts[key], p.equals[key]
}

// names reports whether a section of the file has a row of a name.
func (p *planner) names(section string, nameOf func(map[string]any) string, name string) bool {
	return slices.ContainsFunc(itemsOf(p.values, section), func(item map[string]any) bool { return nameOf(item) == name })
}

// generation returns the ETag of a row, "" for one of the registry.
func generation(row gjson.Result) string {
	if n := row.Get("generation"); n.Exists() {
		return `"` + n.String() + `"`
	}
	return ""
}

// row plans a row of the file, which is stored unless row is missing.
func (p *planner) row(s fileSection, name string, item map[string]any, row gjson.Result) error {
	body := maps.Clone(item)
	if s.body != nil {
		var err error
		if body, err = s.body(p, item, row); err != nil {
			return err
		}
	}
	if body == nil {
		return nil // there is nothing that could be changed
	}
	one := step{Kind: s.what, Name: s.label(name, row), body: body, collection: s.path}
	one.key, _ = body["key"].(string)
	delete(body, "key")
	if !row.Exists() {
		one.Action, one.method, one.path = "create", "POST", s.path
		p.steps = append(p.steps, one)
		return nil
	}
	if one.key != "" && str(row, "keyId") == p.keyIDs[one.key] && p.keyIDs[one.key] != "" {
		one.key = ""
	}
	for field, v := range body {
		if !same(v, row.Get(gjson.Escape(field))) {
			one.Fields = append(one.Fields, field)
		} else if !s.whole {
			delete(body, field)
		}
	}
	if one.key != "" {
		one.Fields = append(one.Fields, "key")
	}
	if len(one.Fields) == 0 {
		p.equal++
		return nil
	}
	slices.Sort(one.Fields)
	one.old = row
	one.Action, one.method, one.path, one.etag = "change", "PUT", s.path+"/"+url.PathEscape(str(row, "id")), generation(row)
	if s.name == "models" {
		one.method, one.path, one.etag = "POST", s.path, ""
	}
	p.steps = append(p.steps, one)
	return nil
}

// same reports whether a value of the file is the stored one. An empty value is as good as a
// missing one.
func same(want any, got gjson.Result) bool {
	raw, err := json.Marshal(want)
	if err != nil {
		return false
	}
	var a any
	if json.Unmarshal(raw, &a); isEmpty(a) {
		return isEmpty(got.Value())
	}
	if list := []any{"priority", "fallback"}; slices.Contains(list, a) && slices.Contains(list, got.Value()) {
		return true // two names of one strategy
	}
	return reflect.DeepEqual(a, got.Value())
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// accountBody returns the fields of an account: its options, which may be references too,
// without those that are equal, and its secrets where they differ.
func (p *planner) accountBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	body := maps.Clone(item)
	delete(body, "options")
	options, _ := item["options"].(map[string]any)
	changed := map[string]any{}
	for name, v := range options {
		if _, ok := v.(map[string]any); ok { // a reference
			text, err := p.resolve(p.ctx, name, v)
			if err != nil {
				return nil, err
			}
			v = text
		}
		if text, ok := v.(string); ok && strings.HasSuffix(name, "Url") {
			v = strings.TrimRight(text, "/") // as it is stored
		}
		if !same(v, row.Get("providerSpecificData."+gjson.Escape(name))) {
			changed[name] = v
		}
	}
	if len(changed) > 0 {
		body["providerSpecificData"] = changed
	}
	if err := p.provider(body, row); err != nil {
		return nil, err
	}
	for field := range accountSecrets(item) {
		delete(body, field)
		if text, equal := p.secret("accounts", byName(item), field); !equal {
			body[field] = text
		}
	}
	return body, nil
}

// destinationBody returns the fields of a destination, with the settings that differ.
func (p *planner) destinationBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	if kind := str(row, "kind"); row.Exists() && kind != item["kind"] {
		return nil, fmt.Errorf("its kind is %s and cannot change; rename the destination in the file, or delete it", kind)
	}
	body := maps.Clone(item)
	delete(body, "settings")
	if row.Exists() {
		delete(body, "kind")
	}
	settings, _ := item["settings"].(map[string]any)
	changed := map[string]any{}
	for name, v := range settings {
		if _, secret := v.(map[string]any); !secret {
			if got := row.Get("settings." + gjson.Escape(name)); v == nil && got.Exists() || v != nil && fmt.Sprint(v) != got.String() {
				changed[name] = v
			}
			continue
		}
		if text, equal := p.secret("destinations", byName(item), name); !equal {
			changed[name] = text
		}
	}
	if len(changed) > 0 {
		body["settings"] = changed
	}
	return body, nil
}

// provider checks the provider of an account, which cannot change. The id of one's own gets
// digits that the name decides.
func (p *planner) provider(body map[string]any, row gjson.Result) error {
	want, _ := body["provider"].(string)
	got := str(row, "provider")
	compatible := strings.HasSuffix(want, "-compatible")
	switch {
	case !row.Exists() && compatible:
		h := fnv.New32a()
		io.WriteString(h, byName(body))
		body["provider"] = fmt.Sprintf("%s-%08x", want, h.Sum32())
	case row.Exists() && want != "" && want != got && !(compatible && strings.HasPrefix(got, want+"-")):
		return fmt.Errorf("its provider is %s and cannot become %s; rename the account in the file, or delete it", got, want)
	case row.Exists():
		delete(body, "provider")
	}
	return nil
}

// keyBody returns the fields of a key.
func (p *planner) keyBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	body := maps.Clone(item)
	if text, ok := item["expiresAt"].(string); ok {
		at, err := p.time("expiresAt", text, 1)
		if err != nil {
			return nil, err
		}
		body["expiresAt"] = at
	}
	if paused, ok := body["paused"]; ok && row.Exists() && (paused == true) == has(row, "pausedAt") {
		delete(body, "paused")
	}
	return body, nil
}

// budgetBody returns the fields of a budget.
func (p *planner) budgetBody(item map[string]any, row gjson.Result) (map[string]any, error) {
	for _, name := range []string{"unit", "window"} {
		if v, ok := item[name]; ok && row.Exists() && str(row, name) != v {
			return nil, fmt.Errorf("its %s is %s and cannot change; rename the budget in the file, or delete it", name, row.Get(name))
		}
	}
	key, _ := item["key"].(string)
	if _, stored := p.keyIDs[key]; key != "" && !stored && !p.names("keys", byName, key) {
		return nil, fmt.Errorf("there is no key %q", key)
	}
	body := maps.Clone(item)
	if v, ok := item["key"]; ok && v == nil {
		body["keyId"] = nil
	}
	return body, nil
}

// disabled plans the disabled models of each prefix that the file names.
func (p *planner) disabled() error {
	const path = "/api/models/disabled"
	want, owned := p.values["disabled"].(map[string]any)
	if !owned {
		return nil
	}
	list, err := p.get(path)
	if err != nil {
		return err
	}
	got := map[string]map[string]bool{}
	for prefix, ids := range list.Get("disabled").Map() {
		got[prefix] = map[string]bool{}
		for _, id := range ids.Array() {
			got[prefix][id.String()] = true
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(want)) {
		ids, _ := want[prefix].([]any)
		var missing []string
		for _, id := range ids {
			if id := fmt.Sprint(id); got[prefix][id] {
				p.equal++
				delete(got[prefix], id)
			} else {
				missing = append(missing, id)
			}
		}
		if len(missing) > 0 {
			p.steps = append(p.steps, step{Action: "create", Kind: "disabled models", Name: prefix, Fields: missing, method: "POST",
				path: path, collection: path, body: map[string]any{"providerAlias": prefix, "ids": missing}})
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(got)) {
		for _, id := range slices.Sorted(maps.Keys(got[prefix])) {
			if p.prune {
				q := url.Values{"providerAlias": {prefix}, "id": {id}}
				p.steps = append(p.steps, step{Action: "delete", Kind: "disabled model", Name: prefix + "/" + id, method: "DELETE",
					path: path + "?" + q.Encode(), collection: path})
			}
		}
	}
	return nil
}

// aliases plans the aliases.
func (p *planner) aliases() error {
	const path = "/api/models/alias"
	want, owned := p.values["aliases"].(map[string]any)
	if !owned {
		return nil
	}
	list, err := p.get(path)
	if err != nil {
		return err
	}
	got := list.Get("aliases").Map()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		one := step{Action: "create", Kind: "alias", Name: name, method: "PUT", path: path, collection: path,
			body: map[string]any{"alias": name, "model": want[name]}}
		if old, ok := got[name]; ok && old.String() == want[name] {
			p.equal++
			continue
		} else if ok {
			one.Action, one.Fields = "change", []string{"model"}
			one.old = gjson.Parse(`{"model":` + old.Raw + `}`)
		}
		p.steps = append(p.steps, one)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && p.prune {
			p.steps = append(p.steps, step{Action: "delete", Kind: "alias", Name: name, method: "DELETE",
				path: path + "?" + url.Values{"alias": {name}}.Encode(), collection: path})
		}
	}
	return nil
}

// settings plans the settings that the file names.
func (p *planner) settings() error {
	const path = "/api/settings"
	want, owned := p.values["settings"].(map[string]any)
	if !owned {
		return nil
	}
	got, err := p.get(path)
	if err != nil {
		return err
	}
	one := step{Action: "change", Kind: "settings", method: "PATCH", path: path, collection: path, body: map[string]any{}, old: got}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v := want[name]
		if prices, ok := v.(map[string]any); ok { // of which each is a setting
			changed := map[string]any{}
			for model, price := range prices {
				if !same(price, got.Get(name+"."+gjson.Escape(model))) {
					changed[model] = price
				}
			}
			if v = changed; len(changed) == 0 {
				p.equal++
				continue
			}
		} else if same(v, got.Get(name)) || v == nil && defaultSetting(name, got.Get(name)) {
			p.equal++
			continue
		}
		one.Fields, one.body[name] = append(one.Fields, name), v
	}
	if len(one.Fields) > 0 {
		p.steps = append(p.steps, one)
	}
	return nil
}

// defaultSetting reports whether a setting that is always shown has its default.
func defaultSetting(name string, got gjson.Result) bool {
	return map[string]string{"strategy": "affinity", "firstByteSeconds": "300", "idleSeconds": "300", "embeddingInputType": "document",
		"responsesWebSocket": "on", "promptCaching": "auto", "streamCost": "off", "captureHours": "24", "timeZone": "UTC",
		"capturePercent": "0", "maxParallel": "0", "keyNetworks": "on", "publicStatus": "off", "statusFeeds": "on"}[name] == got.String()
}

// longestValue is the length of the longest value that a plan shows.
const longestValue = 60

// changes returns the fields that change, with the values before and after: of those that the API shows, for it
// shows no secret, or that are numbers.
func (s *step) changes() string {
	var out []string
	for _, field := range s.Fields {
		raw, _ := json.Marshal(s.body[field])
		old, v := s.old.Get(gjson.Escape(field)), gjson.ParseBytes(raw)
		values := cmp.Or(old.String(), "none") + " → " + cmp.Or(v.String(), "none")
		if (old.Exists() || s.old.Exists() && v.Type == gjson.Number) && !old.IsObject() && !v.IsObject() &&
			len(values) <= longestValue && !slices.Contains([]string{"webhookUrl", "expiresAt"}, field) {
			field += " " + values
		}
		out = append(out, field)
	}
	return strings.Join(out, ", ")
}

// printPlan prints a plan, in JSON to the standard output.
func (p *planner) printPlan(out io.Writer) error {
	if p.json {
		steps := p.steps
		if steps == nil {
			steps = []step{}
		}
		raw, err := json.Marshal(map[string]any{"steps": steps, "equal": p.equal})
		if err == nil {
			_, err = fmt.Fprintf(p.Stdout, "%s\n", raw)
		}
		return err
	}
	return p.printSteps(out, p.steps, fmt.Sprintf(", equal: %d", p.equal))
}

// printSteps prints steps and their numbers, with more behind these.
func (a *app) printSteps(out io.Writer, steps []step, more string) error {
	signs := map[string]cell{"create": {"+", green}, "change": {"~", yellow}, "delete": {"-", red}}
	t := table{columns: []column{{}, {}, {}, {}}}
	counts := map[string]int{}
	for _, s := range steps {
		counts[s.Action]++
		t.add(signs[s.Action], plain(s.Kind), plain(s.Name), plain(s.changes()))
	}
	b := bytes.NewBuffer(a.render(t, false))
	fmt.Fprintf(b, "To create: %d, to change: %d, to delete: %d%s.\n", counts["create"], counts["change"], counts["delete"], more)
	_, err := out.Write(b.Bytes())
	return err
}

// plan shows what apply would do.
func (a *app) plan(ctx context.Context, in *input) error {
	if in.values["schema"] != "" {
		_, err := a.Stdout.Write(Schema())
		return err
	}
	p, err := a.newPlan(ctx, in)
	if err == nil {
		err = p.printPlan(a.Stdout)
	}
	if err == nil && len(p.steps) > 0 {
		err = &ExitError{Code: 2}
	}
	return err
}

// apply makes the machine what the file says. The standard output has the texts of new keys alone.
func (a *app) apply(ctx context.Context, in *input) error {
	p, err := a.newPlan(ctx, in)
	if err != nil {
		return err
	}
	if err := p.printPlan(a.Stderr); err != nil || len(p.steps) == 0 {
		return err
	}
	if err := a.confirm("Apply this?"); err != nil {
		return err
	}
	if err := p.takeAll(); err != nil {
		return err
	}
	fmt.Fprintln(p.Stderr, "Applied.")
	return nil
}

// takeAll makes the calls of all steps, until one fails.
func (p *planner) takeAll() error {
	for i, s := range p.steps {
		if err := p.take(s); err != nil {
			return fmt.Errorf("%s: %w; %d of %d steps are done", strings.TrimSpace(s.Action+" "+s.Kind+" "+s.Name), err, i, len(p.steps))
		}
	}
	return nil
}

var errStale = errors.New("the machine has changed since it was read; run weir plan again")

// take makes the call of a step. Another change since the machine was read is 412.
func (p *planner) take(s step) error {
	if s.key != "" {
		s.body["keyId"] = p.keyIDs[s.key]
	}
	switch s.Kind {
	case "combo", "alias", "key", "budget", "settings":
		if s.method != "DELETE" { // what a row names may come later in the file
			s.body["allowUnknown"] = true
		}
	}
	etag := cmp.Or(s.etag, p.etags[s.collection])
	paused := s.Action == "create" && s.Kind == "key" && s.body["paused"] == true
	if s.Kind == "key" && s.Action == "create" {
		delete(s.body, "paused")
	}
	raw, next, err := p.client.exchange(p.ctx, s.method, s.path, etag, s.body)
	var refused *apiError
	if errors.As(err, &refused) && refused.status == 412 {
		return errStale
	}
	if err != nil {
		return err
	}
	v := gjson.ParseBytes(raw)
	p.etags[s.collection] = next // the generation of the row is that of the collection
	if unknown := array(v, "unknown"); len(unknown) > 0 {
		fmt.Fprintf(p.Stderr, "weir: warning: combo %s names unknown models: %s\n", s.Name, text(p.app, v.Get("unknown")).text)
	}
	if s.Kind == "key" && s.Action == "create" {
		p.keyIDs[s.Name] = str(v, "id")
	}
	if paused {
		_, p.etags[s.collection], err = p.client.exchange(p.ctx, "PUT", s.path+"/"+url.PathEscape(str(v, "id")), next,
			map[string]any{"paused": true})
	}
	if s.Action == "create" && has(v, "apiKey") || has(v, "webhookSecret") {
		err = errors.Join(err, p.stored(fmt.Sprintf("The %s %s is stored.", s.Kind, rowName(v)), v))
	}
	return err
}
