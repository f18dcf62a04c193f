package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"
)

// pull writes weir.yaml of a machine. Secrets are variables that the file names.
func (a *app) pull(ctx context.Context, in *input) error {
	f, err := a.fileOf(ctx, in.client)
	if err != nil {
		return err
	}
	raw, err := encodeFile(f)
	if err != nil {
		return err
	}
	if _, err := readFileText(raw); err != nil { // weir plan reads names, which accounts and keys do without
		fmt.Fprintf(a.Stderr, "weir plan cannot read the file: %v; weir keys set ID --name NAME sets one, as weir accounts set does\n", err)
	}
	if err := a.writeFile(cmp.Or(in.args...), in, raw); err != nil {
		return err
	}
	var names []string
	for _, m := range variableLine.FindAllSubmatch(raw, -1) {
		names = append(names, string(m[1]))
	}
	if slices.Sort(names); len(names) > 0 {
		fmt.Fprintf(a.Stderr, "weir plan reads secrets from these variables: %s\n", strings.Join(slices.Compact(names), ", "))
	}
	return nil
}

// variableLine is a line of a file of weir pull that names a variable.
var variableLine = regexp.MustCompile(`(?m)^ +env: (\w+)$`)

// encodeFile returns the text of a file.
func encodeFile(f *File) ([]byte, error) {
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	block(&doc)
	var out bytes.Buffer
	to := yaml.NewEncoder(&out)
	to.SetIndent(2)
	err = errors.Join(to.Encode(&doc), to.Close())
	return out.Bytes(), err
}

// block sets the usual style of nodes in place of JSON's. Quotes are added where they are needed.
func block(n *yaml.Node) {
	n.Style = 0
	for _, one := range n.Content {
		block(one)
	}
}

// writeFile writes a file that only its owner can read, or to the standard output if its name is
// "" or "-". The flag --force replaces one that exists.
func (a *app) writeFile(name string, in *input, raw []byte) error {
	if name == "" || name == "-" {
		_, err := a.Stdout.Write(raw)
		return err
	}
	how := os.O_EXCL
	if in.values["force"] != "" {
		how = os.O_TRUNC
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|how, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists; choose another name, or replace it with --force", name)
	} else if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(a.Stderr, "The configuration is in %s.\n", name)
	}
	return err
}

// fileOf reads a machine into a File.
func (a *app) fileOf(ctx context.Context, c *client) (*File, error) {
	f := &File{}
	got := map[string]gjson.Result{}
	for _, part := range []struct {
		path string
		from string // member of the answer
		to   any    // nil is read below
	}{
		{"/api/settings", "@this", &f.Settings}, {"/api/providers", "data", &f.Accounts}, {"/api/models/custom", "data", &f.Models},
		{"/api/models/disabled", "disabled", &f.Disabled}, {"/api/combos", "data", &f.Combos}, {"/api/models/alias", "aliases", &f.Aliases},
		{"/api/keys", "data", nil}, {"/api/budgets", "data", &f.Budgets}, {"/api/destinations", "data", &f.Destinations},
		{"/api/identity-providers", "data", &f.IdentityProviders}, {"/api/people", "data", nil},
	} {
		if part.path == "/api/identity-providers" && !c.operator() {
			continue
		}
		v, err := c.call(ctx, "GET", part.path, nil)
		var refused *apiError
		if part.path == "/api/people" && errors.As(err, &refused) && refused.status == 403 {
			continue // an owner sets them
		}
		if err != nil {
			return nil, err
		}
		got[part.path] = v.Get(part.from)
		if part.to == nil {
			continue
		}
		if err := json.Unmarshal([]byte(v.Get(part.from).Raw), part.to); err != nil {
			return nil, fmt.Errorf("the answer of %s cannot be read: %w", part.path, err)
		}
	}
	names := map[string]string{}
	for _, row := range got["/api/keys"].Array() {
		k, err := keyOf(row)
		if err != nil {
			return nil, err
		}
		names[str(row, "id")] = k.Name
		if !isDerived(row) {
			f.Keys = append(f.Keys, k)
		}
	}
	budgets := f.Budgets
	f.Budgets = nil
	for i, row := range got["/api/budgets"].Array() {
		if name, ok := names[str(row, "keyId")]; ok {
			budgets[i].Key = &name
		}
		if !isDerived(row) {
			f.Budgets = append(f.Budgets, budgets[i])
		}
	}
	for i, row := range got["/api/providers"].Array() {
		accountOf(&f.Accounts[i], row)
	}
	for i, row := range got["/api/identity-providers"].Array() {
		if is(row, "hasSecret") {
			f.IdentityProviders[i].ClientSecret = variableOf(f.IdentityProviders[i].Name, "clientSecret")
		}
	}
	for _, row := range got["/api/people"].Array() {
		if isDerived(row) {
			continue
		}
		var person FilePerson
		if err := json.Unmarshal([]byte(row.Raw), &person); err != nil {
			return nil, fmt.Errorf("the answer of /api/people cannot be read: %w", err)
		}
		f.People = append(f.People, person)
	}
	for i, row := range got["/api/destinations"].Array() {
		to := &f.Destinations[i]
		for _, name := range array(row, "secrets") {
			if to.Settings == nil {
				to.Settings = map[string]any{}
			}
			to.Settings[name.String()] = variableOf(to.Name, name.String())
		}
	}
	return f, nil
}

// variableOf returns the variable of a secret of a row.
func variableOf(name, field string) *Reference {
	word := regexp.MustCompile(notWord).ReplaceAllString(strings.ToUpper(name+"_"+field), "_")
	return &Reference{Env: strings.Trim(word, "_")}
}

// keyOf returns a key of the API as one of the file.
func keyOf(row gjson.Result) (k FileKey, err error) {
	fields, _ := row.Value().(map[string]any)
	at := num(row, "expiresAt")
	delete(fields, "expiresAt") // a number there
	raw, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if at > 0 {
		text := time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.999Z07:00")
		k.ExpiresAt = &text
	}
	if paused := has(row, "pausedAt"); paused {
		k.Paused = &paused
	}
	return k, err
}

// notWord matches what a variable's name cannot have.
const notWord = `[^A-Z0-9]+`

// accountOf adds the options of an account, and a variable for each of its secrets.
func accountOf(f *FileAccount, row gjson.Result) {
	f.Options, _ = row.Get("providerSpecificData").Value().(map[string]any)
	refs := map[string]**Reference{"apiKey": &f.APIKey, "accessKeyId": &f.AccessKeyID, "secretAccessKey": &f.SecretAccessKey,
		"sessionToken": &f.SessionToken, "serviceAccount": &f.ServiceAccount, "accessToken": &f.AccessToken, "refreshToken": &f.RefreshToken}
	if has(row, "expiresAt") {
		delete(refs, "accessToken") // of a sign-in, which the gateway renews
		delete(refs, "refreshToken")
	}
	name := f.Name
	if name == "" {
		name = f.Provider
	}
	for field, ref := range refs {
		if strings.Contains(row.Get("secrets").Raw, `"`+field+`"`) {
			*ref = variableOf(name, field)
		}
	}
}
