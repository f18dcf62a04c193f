// Package openapi describes the gateway as an OpenAPI 3.1 document: the URLs,
// methods, credentials, limits and errors are those of the route table, the rest is
// operations.yaml and schemas.yaml. It is no part of the program: the build takes the
// document, docs/reference/openapi.json, as a file.
//
// An operation has an id, a tag and a summary, and
//
//	query   its query parameters, with their descriptions
//	body    the schema of a JSON body
//	form    the schema of a body of multipart/form-data
//	answer  the schema of a JSON answer of 200, or of the field status; 204 has none
//	failed  the status of a failure with the same body, which the summary explains
//	stream  it may answer with a stream of events too
//	binary  the type of an answer that is not JSON; text, html: it is text
//	upgrade it is a WebSocket
//	vendor  the page of the vendor that describes it
//
// A schema is a JSON Schema of an object in which the name of another one stands for
// a reference. Besides,
//
//	list    is the schema of the elements of {"object":"list","data":[…]}
//	input   is true for a request: fields without a description are refused
//	open    is true for an object that may have fields without a description
//	enum    is "budget windows" for those of package budget
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"weir/pkg/auth/session"
	"weir/pkg/budget"
	"weir/pkg/endpoint"
	"weir/pkg/gateway"
	"weir/pkg/wire/clientheader"
)

//go:embed operations.yaml
var operationsFile []byte

//go:embed schemas.yaml
var schemasFile []byte

// operation is a row of operations.yaml.
type operation struct {
	ID      string
	Tag     string
	Summary string
	Query   map[string]string
	Body    string
	Form    string
	Answer  string
	Status  int
	Failed  int
	Stream  bool
	Binary  string
	Text    bool
	HTML    bool
	Upgrade bool
	Vendor  string
}

// object is a JSON object.
type object = map[string]any

// description is what the two files contain.
type description struct {
	operations map[string]operation
	schemas    map[string]object
}

func read() (*description, error) {
	d := &description{}
	if err := yaml.UnmarshalWithOptions(operationsFile, &d.operations, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("operations.yaml: %w", err)
	}
	if err := yaml.Unmarshal(schemasFile, &d.schemas); err != nil {
		return nil, fmt.Errorf("schemas.yaml: %w", err)
	}
	return d, nil
}

// Document returns the OpenAPI document of the gateway's routes. The error names an
// operation without a route, a route without an operation, or a schema that is
// missing or not used.
func Document() ([]byte, error) {
	doc, err := document(false)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(doc, "", " ")
}

// platform are public routes that are not of the program but of what runs it: server/program,
// and the files of server/dashboard or of the edge.
var platform = []endpoint.Route{
	{Pattern: "/health/ready", Access: endpoint.Public, Methods: []endpoint.Method{{Name: "GET"}, {Name: "HEAD"}}},
	{Pattern: "/openapi.json", Access: endpoint.Public, Methods: []endpoint.Method{{Name: "GET"}}},
	{Pattern: "/llms.txt", Access: endpoint.Public, Methods: []endpoint.Method{{Name: "GET"}}},
}

// document returns the document. With strict its schemas refuse fields that are not
// described.
func document(strict bool) (object, error) {
	d, err := read()
	if err != nil {
		return nil, err
	}
	b := builder{description: d, used: map[string]bool{}, strict: strict}
	paths, tags := object{}, map[string]bool{}
	for _, r := range append(gateway.Routes(), platform...) {
		item := object{}
		for _, m := range r.Methods {
			name := m.Name + " " + r.Pattern
			op, ok := d.operations[name]
			if !ok {
				return nil, fmt.Errorf("operations.yaml has no %q", name)
			}
			delete(d.operations, name)
			tags[op.Tag] = true
			item[strings.ToLower(m.Name)] = b.operation(r, m, op)
		}
		paths[strings.ReplaceAll(r.Pattern, "...}", "}")] = item
	}
	for name := range d.operations {
		return nil, fmt.Errorf("operations.yaml: %q is no route", name)
	}
	responses := b.errors()
	schemas := object{}
	for name, s := range d.schemas {
		schemas[name] = b.schema(s)
	}
	for name := range d.schemas {
		if !b.used[name] {
			b.fail("schemas.yaml: %q is not used", name)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "weir",
			"version":     "1",
			"description": "One address and one key for all provider accounts. Bodies of the vendors' APIs pass with all their fields; only the ones that the gateway reads itself are named here.",
			"license":     object{"name": "MIT", "identifier": "MIT"},
		},
		"servers": []object{
			{"url": "/"},
			{"url": "/{machineId}", "description": "The same routes of /v1, /v1beta and /api, for a key that does not name its machine, and for the operator", "variables": object{"machineId": object{"default": "machine"}}},
		},
		"tags":  tagList(tags),
		"paths": paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": securitySchemes,
			"responses":       responses,
		},
	}, nil
}

var securitySchemes = object{
	"key": object{"type": "http", "scheme": "bearer", "description": "A gateway key with scope data"},
	"xApiKey": object{"type": "apiKey", "in": "header", "name": "x-api-key",
		"description": "A gateway key, as clients of Anthropic send it"},
	"googKey": object{"type": "apiKey", "in": "header", "name": "x-goog-api-key",
		"description": "A gateway key, as clients of Google send it"},
	"manage": object{"type": "http", "scheme": "bearer",
		"description": "A gateway key with scope manage, or the operator token"},
	"metrics": object{"type": "http", "scheme": "bearer",
		"description": "A gateway key with scope metrics, or the operator token"},
	"operator": object{"type": "http", "scheme": "bearer", "description": "The operator token (ADMIN_TOKEN)"},
	"session": object{"type": "apiKey", "in": "cookie", "name": session.CookieName,
		"description": "A session of the dashboard; changes need its x-csrf-token"},
}

func tagList(set map[string]bool) []object {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	list := make([]object, len(names))
	for i, name := range names {
		list[i] = object{"name": name}
	}
	return list
}

// builder makes the parts of the document. It keeps its first error.
type builder struct {
	*description
	used   map[string]bool
	strict bool // refuse fields that are not described
	err    error
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) ref(name string) object {
	if _, ok := b.schemas[name]; !ok {
		b.fail("schemas.yaml has no %q", name)
	}
	b.used[name] = true
	return object{"$ref": "#/components/schemas/" + name}
}

var parameter = regexp.MustCompile(`\{(\w+)(\.\.\.)?\}`)

func (b *builder) operation(r endpoint.Route, m endpoint.Method, op operation) object {
	out := object{"operationId": op.ID, "summary": op.Summary, "tags": []string{op.Tag}}
	if op.Vendor != "" {
		out["externalDocs"] = object{"url": op.Vendor}
	}
	var parameters []object
	for _, p := range parameter.FindAllStringSubmatch(r.Pattern, -1) {
		v := object{"name": p[1], "in": "path", "required": true, "schema": object{"type": "string"}}
		if p[2] != "" {
			v["description"] = "May contain slashes"
		}
		parameters = append(parameters, v)
	}
	names := make([]string, 0, len(op.Query))
	for name := range op.Query {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		v := object{"name": name, "in": "query", "schema": object{"type": "string"}}
		if d := op.Query[name]; d != "" {
			v["description"] = d
		}
		parameters = append(parameters, v)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.Body != "" || op.Form != "" {
		content := object{}
		if op.Body != "" {
			content["application/json"] = object{"schema": b.ref(op.Body)}
		}
		if op.Form != "" {
			content["multipart/form-data"] = object{"schema": b.ref(op.Form)}
		}
		out["requestBody"] = object{"content": content, "description": "At most " + size(r.MaxBody)}
	}
	out["responses"] = b.answers(r, op)
	out["security"] = security(r, m)
	return out
}

// size writes a limit as KiB or MiB.
func size(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

// answers returns the answers of an operation, errors included.
func (b *builder) answers(r endpoint.Route, op operation) object {
	content := object{}
	if op.Answer != "" {
		content["application/json"] = object{"schema": b.ref(op.Answer)}
	}
	if op.Stream {
		content["text/event-stream"] = object{"schema": object{"type": "string"}}
	}
	if op.Binary != "" {
		content[op.Binary] = object{"schema": b.ref("Binary")}
	}
	if op.Text {
		content["text/plain"] = object{"schema": object{"type": "string"}}
	}
	if op.HTML {
		content["text/html"] = object{"schema": object{"type": "string"}}
	}
	status, success := op.Status, object{"description": op.Summary}
	switch {
	case op.Upgrade:
		status, success = 101, object{"description": "The WebSocket is open"}
	case status == 0:
		status = 200
	}
	if len(content) > 0 {
		success["content"] = content
	}
	out := object{strconv.Itoa(status): success, "default": object{"$ref": "#/components/responses/" + errorOf(r)}}
	if op.Failed != 0 {
		out[strconv.Itoa(op.Failed)] = success
	}
	return out
}

// errorOf returns the name of the schema of a route's errors.
func errorOf(r endpoint.Route) string {
	if r.Models {
		return "ListError"
	}
	return r.Dialect.Client().ErrorSchema
}

func (b *builder) errors() object {
	out := object{}
	for _, name := range [...]string{"Error", "MessagesError", "GeminiError", "ListError"} {
		out[name] = object{
			"description": "The call failed.",
			"content":     object{"application/json": object{"schema": b.ref(name)}},
			"headers": object{
				"retry-after": object{"description": "Seconds until the call may be repeated",
					"schema": object{"type": "string"}},
				"x-should-retry": object{"description": "false: repeating the call does not help",
					"schema": object{"type": "string"}},
				"x-request-id": object{"description": "The request's id in GET /api/requests and in the log",
					"schema": object{"type": "string"}},
			},
		}
	}
	return out
}

// security returns the credentials that a method takes.
func security(r endpoint.Route, m endpoint.Method) []object {
	access := r.Access
	if m.Access != endpoint.Nobody {
		access = m.Access
	}
	var names []string
	switch access {
	case endpoint.Data, endpoint.Realtime, endpoint.List, endpoint.Own:
		names = []string{"key", "xApiKey"}
		if reads(r, "x-goog-api-key") {
			names = append(names, "googKey")
		}
	case endpoint.Manage:
		names = []string{"manage", "session"}
	case endpoint.Metrics:
		names = []string{"metrics"}
	case endpoint.Operator:
		names = []string{"operator", "session"}
	default:
		return []object{}
	}
	out := make([]object, len(names))
	for i, name := range names {
		out[i] = object{name: []string{}}
	}
	return out
}

// reads reports whether the platform passes on a header field of a route's requests.
func reads(r endpoint.Route, name string) bool {
	return slices.ContainsFunc(clientheader.Read(clientheader.ClassOf(r.Pattern).Routes),
		func(f clientheader.Field) bool { return f.Name == name })
}

// schema writes the short forms of schemas.yaml in full. Names of schemas in place
// of a schema become references.
func (b *builder) schema(s object) object {
	out := object{}
	for k, v := range s {
		switch k {
		case "list", "open":
		case "input":
			if s["open"] != true {
				out["additionalProperties"] = false
			}
		case "properties":
			p := object{}
			for name, v := range v.(object) {
				p[name] = b.value(v)
			}
			out[k] = p
		case "items", "additionalProperties":
			out[k] = b.value(v)
		case "enum":
			if out[k] = v; v == "budget windows" {
				out[k] = budget.Windows()
			}
		default:
			out[k] = v
		}
	}
	if of, ok := s["list"].(string); ok {
		p, _ := out["properties"].(object)
		if p == nil {
			p = object{}
		}
		p["object"] = object{"const": "list"}
		p["data"] = object{"type": "array", "items": b.ref(of)}
		required := []any{"object", "data"}
		if more, ok := s["required"].([]any); ok {
			required = append(required, more...)
		}
		out["properties"], out["required"] = p, required
	}
	if _, ok := out["properties"]; ok && out["type"] == nil {
		out["type"] = "object"
	}
	if b.strict && out["properties"] != nil && out["additionalProperties"] == nil && s["open"] != true {
		out["additionalProperties"] = false
	}
	return out
}

func (b *builder) value(v any) any {
	switch v := v.(type) {
	case string:
		return b.ref(v)
	case object:
		return b.schema(v)
	}
	return v
}
