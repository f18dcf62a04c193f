package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/pkg/catalog"
)

// File is weir.yaml: the configuration of one machine. The file owns the sections that it
// has. A field that a row does not name keeps its value, and null is its default. The names
// are those of the API (docs/reference/openapi.json) but where a comment says otherwise; the
// tag enum lists the values of a text.
type File struct {
	Machine  string              `json:"machine,omitempty"` // name or id
	Settings *FileSettings       `json:"settings,omitempty"`
	Accounts []FileAccount       `json:"accounts,omitempty"`
	Models   []FileModel         `json:"models,omitempty"`   // custom models
	Disabled map[string][]string `json:"disabled,omitempty"` // models by the prefix of their provider
	Combos   []FileCombo         `json:"combos,omitempty"`
	Aliases  map[string]string   `json:"aliases,omitempty"`
	Keys     []FileKey           `json:"keys,omitempty"`
	Budgets  []FileBudget        `json:"budgets,omitempty"`
	// Destinations of notifications and exports.
	Destinations []FileDestination `json:"destinations,omitempty"`
	// IdentityProviders are those of the gateway, which the operator alone can set.
	IdentityProviders []FileIdentityProvider `json:"identityProviders,omitempty"`
	People            []FilePerson           `json:"people,omitempty"`
}

// FileSettings are the settings of the machine.
type FileSettings struct {
	Strategy           *string            `json:"strategy,omitempty" enum:"priority,fallback,round-robin,affinity,weighted,fastest,least-busy"`
	FirstByteSeconds   *int               `json:"firstByteSeconds,omitempty"`
	IdleSeconds        *int               `json:"idleSeconds,omitempty"`
	EmbeddingInputType *string            `json:"embeddingInputType,omitempty" enum:"document,query"`
	ResponsesWebSocket *string            `json:"responsesWebSocket,omitempty" enum:"on,off"`
	PromptCaching      *string            `json:"promptCaching,omitempty" enum:"on,auto,off"`
	StreamCost         *string            `json:"streamCost,omitempty" enum:"on,off"`
	TimeZone           *string            `json:"timeZone,omitempty"`
	CapturePercent     *int               `json:"capturePercent,omitempty"`
	CaptureHours       *int               `json:"captureHours,omitempty"`
	DefaultModel       *string            `json:"defaultModel,omitempty"`
	SmallModel         *string            `json:"smallModel,omitempty"`
	ClaudeOpusModel    *string            `json:"claudeOpusModel,omitempty"`
	ClaudeSonnetModel  *string            `json:"claudeSonnetModel,omitempty"`
	ClaudeHaikuModel   *string            `json:"claudeHaikuModel,omitempty"`
	ClaudeFableModel   *string            `json:"claudeFableModel,omitempty"`
	ModelPrices        map[string]*string `json:"modelPrices,omitempty"`
	KeyNetworks        *string            `json:"keyNetworks,omitempty" enum:"on,off"`
	PublicStatus       *string            `json:"publicStatus,omitempty" enum:"off,providers,models"`
	StatusFeeds        *string            `json:"statusFeeds,omitempty" enum:"on,off"`
	TraceUpstream      []string           `json:"traceUpstream,omitempty"`
	TagsFrom           []string           `json:"tagsFrom,omitempty"`
	MaxParallel        *int               `json:"maxParallel,omitempty"`
}

// FileAccount is a connection.
type FileAccount struct {
	Name            string         `json:"name"`
	Provider        string         `json:"provider"`
	AuthType        *string        `json:"authType,omitempty"`
	IsActive        *bool          `json:"isActive,omitempty"`
	Priority        *int           `json:"priority,omitempty"`
	Weight          *int           `json:"weight,omitempty"`
	Options         map[string]any `json:"options,omitempty"` // providerSpecificData
	APIKey          *Reference     `json:"apiKey,omitempty"`
	AccessKeyID     *Reference     `json:"accessKeyId,omitempty"`
	SecretAccessKey *Reference     `json:"secretAccessKey,omitempty"`
	SessionToken    *Reference     `json:"sessionToken,omitempty"`
	ServiceAccount  *Reference     `json:"serviceAccount,omitempty"`
	AccessToken     *Reference     `json:"accessToken,omitempty"`
	RefreshToken    *Reference     `json:"refreshToken,omitempty"`
}

// Reference is where a secret comes from: one of the three.
type Reference struct {
	Env     string `json:"env,omitempty"`
	File    string `json:"file,omitempty"`
	Command string `json:"command,omitempty"` // of the shell; it prints the secret
}

// FileModel is a custom model.
type FileModel struct {
	ProviderAlias string  `json:"providerAlias"`
	ID            string  `json:"id"`
	Type          *string `json:"type,omitempty" enum:"llm,imageToText,embedding,image,tts,stt,video,music,rerank"`
	Name          *string `json:"name,omitempty"`
	ContextLength *int    `json:"contextLength,omitempty"`
	MaxTokens     *int    `json:"maxTokens,omitempty"`
}

// FileCombo is a combo.
type FileCombo struct {
	Name     string            `json:"name"`
	Models   []string          `json:"models"`
	Kind     *string           `json:"kind,omitempty"`
	Strategy *string           `json:"strategy,omitempty" enum:"fallback,priority,round-robin,affinity,weighted,cheapest,fastest,least-busy"`
	SplitBy  *string           `json:"splitBy,omitempty" enum:"session,key"`
	Weights  map[string]int    `json:"weights,omitempty"`
	On       map[string]string `json:"on,omitempty"`
}

// FileKey is a key. Its text is created by the gateway.
type FileKey struct {
	Name           string   `json:"name"`
	Scopes         []string `json:"scopes,omitempty"`
	Models         []string `json:"models,omitempty"`
	Tags           []string `json:"tags,omitempty"`
	RPM            *int     `json:"rpm,omitempty"`
	DailyMax       *int     `json:"dailyMax,omitempty"`
	TPM            *int     `json:"tpm,omitempty"`
	MaxParallel    *int     `json:"maxParallel,omitempty"`
	ExpiresAt      *string  `json:"expiresAt,omitempty"` // a day, or a time of RFC 3339
	Paused         *bool    `json:"paused,omitempty"`
	CapturePercent *int     `json:"capturePercent,omitempty"`
	CaptureHours   *int     `json:"captureHours,omitempty"`
}

// FileBudget is a budget.
type FileBudget struct {
	Name       string   `json:"name"`
	Key        *string  `json:"key,omitempty"` // name of the key that it limits; keyId in the API
	Limit      float64  `json:"limit"`
	Unit       string   `json:"unit" enum:"usd,tokens,requests"`
	Window     string   `json:"window" enum:"minute,5h,day,week,month,total"`
	Models     []string `json:"models,omitempty"`
	Tag        *string  `json:"tag,omitempty"`
	Tool       *string  `json:"tool,omitempty"`
	Unpriced   *string  `json:"unpriced,omitempty" enum:"pass,refuse"`
	WebhookURL *string  `json:"webhookUrl,omitempty"`
}

// FileDestination is a destination. A secret setting is a Reference.
type FileDestination struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`
	Enabled  *bool          `json:"enabled,omitempty"`
	Events   []string       `json:"events,omitempty"`
	Settings map[string]any `json:"settings,omitempty"`
}

// FileIdentityProvider is an identity provider of the gateway.
type FileIdentityProvider struct {
	Name         string     `json:"name"`
	Kind         *string    `json:"kind,omitempty" enum:"cloudflare-access,google-iap,ci,passkey"`
	Issuer       string     `json:"issuer"`
	ClientID     string     `json:"clientId"`
	ClientSecret *Reference `json:"clientSecret,omitempty"`
	Scopes       []string   `json:"scopes,omitempty"`
	Rules        []FileRule `json:"rules,omitempty"`
}

// FileRule is a role for everyone whose claim has a value.
type FileRule struct {
	Claim    []string      `json:"claim"` // the path to it
	Value    string        `json:"value"`
	Role     string        `json:"role" enum:"member,viewer,editor,owner"`
	Machines []string      `json:"machines"` // names, ids, or * for all
	Template *FileTemplate `json:"template,omitempty"`
}

// FileTemplate has the limits of the keys of a member.
type FileTemplate struct {
	Keys         *int     `json:"keys,omitempty"`
	Models       []string `json:"models,omitempty"`
	RPM          *int     `json:"rpm,omitempty"`
	DailyMax     *int     `json:"dailyMax,omitempty"`
	TPM          *int     `json:"tpm,omitempty"`
	MaxParallel  *int     `json:"maxParallel,omitempty"`
	Days         *int     `json:"days,omitempty"`
	BudgetUSD    *float64 `json:"budgetUsd,omitempty"`
	BudgetWindow *string  `json:"budgetWindow,omitempty" enum:"minute,5h,day,week,month,total"`
}

// FilePerson is the role of a person on the machine. The id alone decides who it is: a person
// chooses the name, and others get the addresses of those who leave.
type FilePerson struct {
	ID       string        `json:"id"`
	Name     *string       `json:"name,omitempty"` // for readers of the file
	Role     string        `json:"role" enum:"member,viewer,editor,owner"`
	Template *FileTemplate `json:"template,omitempty"`
}

// readFileText reads weir.yaml. The result has the values of the file, also null, by the types
// of File. An error has line and column.
func readFileText(raw []byte) (map[string]any, error) {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return map[string]any{}, nil
	} else if err != nil {
		return nil, err
	}
	if d.Decode(&second) == nil {
		return nil, mistake(&second, "a second document")
	}
	v, err := readNode(doc.Content[0], reflect.TypeFor[File](), 0)
	if err != nil {
		return nil, err
	}
	values, _ := v.(map[string]any)
	for _, s := range fileSections {
		seen := map[string]bool{}
		for i, item := range itemsOf(values, s.name) {
			name := s.nameOf(item)
			if name == "" || seen[name] {
				return nil, mistake(rowNode(doc.Content[0], s.name, i), "%s: the name %q is empty or used twice", s.name, name)
			}
			seen[name] = true
		}
	}
	if name := cycleOf(values); name != "" {
		at := slices.IndexFunc(itemsOf(values, "combos"), func(c map[string]any) bool { return c["name"] == name })
		return nil, mistake(rowNode(doc.Content[0], "combos", at), "combos: %s leads back to itself", name)
	}
	return values, nil
}

// cycleOf returns the name of a combo of the file whose members lead back to it, "" without one.
func cycleOf(values map[string]any) string {
	members := map[string][]any{}
	for _, c := range itemsOf(values, "combos") {
		members[byName(c)], _ = c["models"].([]any)
	}
	done, under := map[string]bool{}, map[string]bool{} // under the one that is looked at
	var walk func(name string) string
	walk = func(name string) string {
		switch {
		case under[name]:
			return name
		case done[name]:
			return ""
		}
		under[name] = true
		for _, m := range members[name] {
			text, _ := m.(string)
			if found := walk(text); found != "" {
				return found
			}
		}
		under[name], done[name] = false, true
		return ""
	}
	for _, c := range itemsOf(values, "combos") {
		if found := walk(byName(c)); found != "" {
			return found
		}
	}
	return ""
}

// rowNode returns the node of row i of a section.
func rowNode(doc *yaml.Node, section string, i int) *yaml.Node {
	if rows := rowsOf(doc, section); i < len(rows) {
		return rows[i]
	}
	return doc
}

// rowsOf returns the nodes of the rows of a section.
func rowsOf(doc *yaml.Node, section string) (rows []*yaml.Node) {
	eachValue(doc, func(name string, v *yaml.Node) {
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if name == section {
			rows = v.Content
		}
	})
	return rows
}

func mistake(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: %s", n.Line, n.Column, fmt.Sprintf(format, args...))
}

// maxDepth bounds a document; an alias may contain itself.
const maxDepth = 20

// readNode returns the value of a node of a type: a map for a struct, and nil for null.
func readNode(n *yaml.Node, t reflect.Type, depth int) (any, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case depth > maxDepth:
		return nil, mistake(n, "it is nested too deeply")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, nil
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return readMapping(n, t, depth)
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return nil, mistake(n, "a list is expected")
		}
		list := []any{}
		for _, one := range n.Content {
			v, err := readNode(one, t.Elem(), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case t.Kind() == reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!timestamp" {
			return nil, mistake(n, "a text is expected; write it in quotes")
		}
		return n.Value, nil
	case t.Kind() == reflect.Interface && n.Kind != yaml.ScalarNode:
		if n.Kind == yaml.SequenceNode {
			return readNode(n, reflect.TypeFor[[]any](), depth)
		}
		return readNode(n, reflect.TypeFor[map[string]any](), depth)
	}
	v := reflect.New(t)
	if n.Decode(v.Interface()) != nil {
		return nil, mistake(n, "%s is expected", map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "an integer",
			reflect.Float64: "a number"}[t.Kind()])
	}
	return v.Elem().Interface(), nil
}

// readMapping returns the value of a node of a struct or map.
func readMapping(n *yaml.Node, t reflect.Type, depth int) (any, error) {
	if n.Kind != yaml.MappingNode {
		if t == reflect.TypeFor[Reference]() {
			return nil, mistake(n, "a secret is expected as {env: NAME}, {file: PATH} or {command: TEXT}")
		}
		return nil, mistake(n, "a mapping is expected")
	}
	out := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		key, of := n.Content[i], t
		if t.Kind() == reflect.Map {
			of = t.Elem()
		} else if of = fieldOf(t, key.Value); of == nil {
			return nil, mistake(key, "unknown field %q; %s", key.Value, fieldsLike(t, key.Value))
		}
		if _, twice := out[key.Value]; twice || key.Kind != yaml.ScalarNode {
			return nil, mistake(key, "the name %q stands here twice, or is not a text", key.Value)
		}
		v, err := readNode(n.Content[i+1], of, depth+1)
		if err != nil {
			return nil, err
		}
		out[key.Value] = v
	}
	return out, nil
}

// fieldOf returns the type of a field of a struct by its name in JSON, or nil.
func fieldOf(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type
		}
	}
	return nil
}

// fieldsLike says which field of a structure is meant by another name, or which ones there are.
func fieldsLike(t reflect.Type, name string) string {
	var known []string
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, tag)
	}
	if near := catalog.Closest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	slices.Sort(known)
	return "the fields here are " + strings.Join(known, ", ")
}

// itemsOf returns the rows of a section that is a list.
func itemsOf(values map[string]any, section string) (items []map[string]any) {
	list, _ := values[section].([]any)
	for _, one := range list {
		item, _ := one.(map[string]any)
		items = append(items, item)
	}
	return items
}

// resolve returns the secret of a reference.
func (a *app) resolve(ctx context.Context, what string, v any) (string, error) {
	ref, _ := v.(map[string]any)
	if len(ref) != 1 {
		return "", fmt.Errorf("%s: write one of {env: NAME}, {file: PATH} and {command: TEXT}", what)
	}
	if command, ok := ref["command"].(string); ok {
		shell := []string{"sh", "-c"}
		if runtime.GOOS == "windows" {
			shell = []string{"cmd", "/C"}
		}
		cmd := exec.CommandContext(ctx, shell[0], shell[1], command)
		cmd.Stderr = a.Stderr
		out, err := cmd.Output()
		if text := strings.TrimSpace(string(out)); err == nil && text != "" {
			return text, nil
		}
		return "", fmt.Errorf("%s: the command fails or prints nothing: %w", what, errors.Join(err))
	}
	for kind, name := range ref {
		return a.refer(what, fmt.Sprint(kind, ":", name))
	}
	return "", nil
}

// unset returns an error that names all variables of a file that are not set, each with line and column.
func (a *app) unset(raw []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil || len(doc.Content) == 0 {
		return err
	}
	var errs []string
	for _, section := range []string{"accounts", "destinations", "identityProviders"} {
		for i := range rowsOf(doc.Content[0], section) {
			eachValue(rowNode(doc.Content[0], section, i), func(field string, v *yaml.Node) {
				if field == "options" || field == "settings" { // whose values may be references too
					eachValue(v, func(name string, v *yaml.Node) { errs = append(errs, a.unsetAt(name, v)...) })
					return
				}
				errs = append(errs, a.unsetAt(field, v)...)
			})
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errors.New(strings.Join(errs, "; "))
}

// unsetAt returns the mistake of a reference to a variable that is not set.
func (a *app) unsetAt(what string, n *yaml.Node) (errs []string) {
	eachValue(n, func(kind string, v *yaml.Node) {
		if kind == "env" && len(n.Content) == 2 && v.Kind == yaml.ScalarNode && strings.TrimSpace(a.variable(v.Value)) == "" {
			errs = append(errs, mistake(v, "%s: the variable %s is not set", what, v.Value).Error())
		}
	})
	return errs
}

// eachValue calls f with the values of a mapping.
func eachValue(n *yaml.Node, f func(name string, v *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i].Value, n.Content[i+1])
	}
}

// Schema returns the JSON Schema of the file, for editors.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[File](), "")
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "weir.yaml"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // the types are constant
	}
	return append(out, '\n')
}

// schemaOf returns the schema of a type. enum lists the values of a text.
func schemaOf(t reflect.Type, enum string) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem(), enum)
		if s["type"] != "object" {
			s["type"] = []any{s["type"], "null"}
		}
		if list, ok := s["enum"].([]any); ok {
			s["enum"] = append(list, nil)
		}
		return s
	case reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": schemaOf(t.Elem(), "")}
	case reflect.Map:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": schemaOf(t.Elem(), "")}
	case reflect.Struct:
		return structSchema(t)
	case reflect.Interface:
		return map[string]any{}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	s := map[string]any{"type": "string"}
	if enum != "" {
		list := []any{}
		for _, v := range strings.Split(enum, ",") {
			list = append(list, v)
		}
		s["enum"] = list
	}
	return s
}

func structSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = schemaOf(f.Type, f.Tag.Get("enum"))
		if rest == "" {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if t == reflect.TypeFor[Reference]() {
		s["minProperties"], s["maxProperties"] = 1, 1
	}
	if slices.Sort(required); len(required) > 0 {
		s["required"] = required
	}
	return s
}
