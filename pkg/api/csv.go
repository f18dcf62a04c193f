package api

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// csvColumn is a column of a CSV file: a field of the JSON rows.
type csvColumn struct{ head, path string }

// requestColumns are the columns of GET /api/requests.csv.
var requestColumns = [...]csvColumn{
	{"time", "at"}, {"id", "id"}, {"key", "keyId"}, {"endpoint", "endpoint"}, {"requested_model", "asked"},
	{"model", "model"},
	{"provider", "provider"}, {"connection", "connectionId"}, {"status", "status"}, {"outcome", "outcome"},
	{"reason", "reason"}, {"error", "error"},
	{"latency_ms", "latencyMs"}, {"first_token_ms", "firstMs"}, {"attempts", "attempts"}, {"failed_attempts", "failed"},
	{"fields_not_sent", "dropped"},
	{"input_tokens", "inputTokens"}, {"output_tokens", "outputTokens"}, {"reasoning_tokens", "reasoningTokens"},
	{"cache_read_tokens", "cacheReadTokens"},
	{"cost_usd", "costUsd"}, {"priced", "priced"}, {"estimated", "estimated"}, {"unpriced_parts", "unpricedParts"},
	{"tags", "tags"}, {"request_bytes", "requestBytes"}, {"answer_bytes", "answerBytes"}, {"key_id", "keyId"},
	{"connection_id", "connectionId"}, {"tool", "tool"}, {"fields_set", "dropped"}, {"person", "keyId"},
	{"cache_write_tokens", "cacheWriteTokens"},
	{"provider_id", "provider"},
}

// usageColumns are the columns of GET /api/usage.csv.
var usageColumns = [...]csvColumn{
	{"month", "month"}, {"day", "day"}, {"hour", "hour"}, {"key", "keyId"}, {"connection", "connectionId"},
	{"provider", "provider"}, {"model", "model"}, {"endpoint", "endpoint"},
	{"requests", "requests"}, {"failed_requests", "failedRequests"}, {"succeeded", "succeeded"},
	{"provider_failed", "providerFailed"}, {"no_account", "noAccount"}, {"left", "left"},
	{"refused", "refused"}, {"refused_key_limit", "refusedKeyLimit"}, {"refused_budget", "refusedBudget"},
	{"refused_concurrency", "refusedConcurrency"},
	{"refused_key", "refusedKey"}, {"refused_model", "refusedModel"}, {"refused_request", "refusedRequest"},
	{"attempts", "attempts"}, {"failed_attempts", "failedAttempts"}, {"input_tokens", "inputTokens"},
	{"output_tokens", "outputTokens"},
	{"reasoning_tokens", "reasoningTokens"}, {"cache_read_tokens", "cacheReadTokens"},
	{"cache_write_tokens", "cacheWriteTokens"},
	{"cost_usd", "costUsd"}, {"unpriced_attempts", "unpricedAttempts"}, {"estimated_attempts", "estimatedAttempts"},
	{"failed_limited", "failedBy.limited"}, {"failed_key_refused", "failedBy.key_refused"},
	{"failed_out_of_credit", "failedBy.out_of_credit"}, {"failed_server_error", "failedBy.server_error"},
	{"failed_timeout", "failedBy.timeout"}, {"failed_unreachable", "failedBy.unreachable"},
	{"failed_blocked", "failedBy.blocked"}, {"failed_refused", "failedBy.refused"},
	{"latency_ms", "latencyMs"}, {"first_token_ms", "firstTokenMs"},
	{"latency_p50_ms", "latencyP50Ms"}, {"latency_p95_ms", "latencyP95Ms"}, {"first_token_p50_ms", "firstTokenP50Ms"},
	{"first_token_p95_ms", "firstTokenP95Ms"},
	{"cache_share", "cacheShare"}, {"key_id", "keyId"}, {"connection_id", "connectionId"}, {"tool", "tool"}, {"tag", "tag"},
	{"person", "keyId"}, {"provider_id", "provider"},
}

// named are the columns that have the name of an id, if it has one.
var named = [...]string{"key", "connection", "provider"}

// csvRequestParameters are those of rpc.RequestParameters that are filters.
var csvRequestParameters = rpc.RequestParameters[:slices.Index(rpc.RequestParameters[:], "sort")]

// RequestsCSV answers GET /api/requests.csv: the requests that match the filters, the
// newest first. They are read while the client reads the file.
func (h *Handler) RequestsCSV(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	if err := rpc.OnlyParameters(env.Query, csvRequestParameters); err != nil {
		return nil, err
	}
	query := map[string]string{"limit": strconv.Itoa(rpc.MaxRequestsPage)}
	maps.Copy(query, env.Query)
	env.Route, env.Query = "/api/requests", query
	return h.csv(ctx, c, "requests", requestColumns[:], func() (rows []byte, more bool, err error) {
		raw, cursor, err := h.requestPage(ctx, c.MachineID, env)
		query["cursor"] = cursor
		return raw, cursor != "", err
	})
}

// UsageCSV answers GET /api/usage.csv: the rows of GET /api/usage. Those of days are read
// a week at a time.
func (h *Handler) UsageCSV(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	env.Route, env.Scan = "/api/usage", 1
	return h.csv(ctx, c, "usage", usageColumns[:], func() (rows []byte, more bool, err error) {
		a, err := h.manage(ctx, c.MachineID, &env)
		if err != nil {
			return nil, false, err
		}
		env.Scan = gjson.GetBytes(a.Body, "scan").Int()
		return a.Body, env.Scan > 0, nil
	})
}

// csv returns a CSV file of the rows under "data" in the answers that next returns, as
// long as there are more.
func (h *Handler) csv(ctx context.Context, c *auth.Call, name string, columns []csvColumn,
	next func() (rows []byte, more bool, err error)) (*httpmsg.Response, error) {
	names, err := h.names(ctx, c.MachineID)
	if err != nil {
		return nil, err
	}
	raw, more, err := next()
	if err != nil {
		return nil, err
	}
	first := []byte("\ufeff") // by which spreadsheets recognize UTF-8
	for i, col := range columns {
		if i > 0 {
			first = append(first, ',')
		}
		first = append(first, col.head...)
	}
	first = appendRows(append(first, "\r\n"...), columns, raw, names)
	pieces := &stream.Pieces{Piece: first, Next: func() ([]byte, error) {
		if !more {
			return nil, nil
		}
		if raw, more, err = next(); err != nil {
			return nil, err
		}
		return appendRows([]byte{}, columns, raw, names), nil
	}}
	resp := &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "text/csv; charset=utf-8"},
			{Name: "content-disposition", Value: `attachment; filename="` + name + `.csv"`},
		},
		Body: pieces,
	}
	if !h.SendsPieces {
		all, err := io.ReadAll(pieces)
		if err != nil {
			return nil, err
		}
		resp.Body = stream.FromBytes(all)
	}
	return resp, nil
}

// ofPerson is the beginning of a name in names: that of the person who has a key, by the key's id.
const ofPerson = "person of "

// names returns the names of the machine's keys and connections by their ids, those of its own
// servers by the ids of their providers, and those of the people who have the keys.
func (h *Handler) names(ctx context.Context, machineID string) (map[string]string, error) {
	m, err := h.Cache.Get(ctx, machineID)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	var ids []string
	for i := range m.Keys {
		names[m.Keys[i].ID] = m.Keys[i].Name
		if p := m.Keys[i].Person; p != "" && !slices.Contains(ids, p) {
			ids = append(ids, p)
		}
	}
	people := h.peopleNames(ctx, machineID, ids)
	for i := range m.Keys {
		if p := m.Keys[i].Person; p != "" {
			names[ofPerson+m.Keys[i].ID] = cmp.Or(people[p], p)
			names["person="+p] = cmp.Or(people[p], p) // the tag
		}
	}
	for i := range m.Connections {
		c := &m.Connections[i]
		names[c.ID] = c.Name
		if d := provider.Lookup(c.Provider); d != nil && d.Compatible {
			names[c.Provider] = cmp.Or(names[c.Provider], c.Name)
		}
	}
	return names, nil
}

func appendRows(b []byte, columns []csvColumn, raw []byte, names map[string]string) []byte {
	gjson.GetBytes(raw, "data").ForEach(func(_, row gjson.Result) bool {
		for i, col := range columns {
			if i > 0 {
				b = append(b, ',')
			}
			v := row.Get(col.path)
			switch {
			case col.head == "time":
				b = time.UnixMilli(v.Int()).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
			case v.IsArray():
				var parts []string
				for _, part := range v.Array() {
					text := part.Str
					if col.path == "dropped" && strings.Contains(text, "=") != (col.head == "fields_set") {
						continue
					}
					if part.IsObject() { // a failed attempt
						id := part.Get("connectionId").Str
						text = cmp.Or(names[id], id) + " " + part.Get("status").Raw
					}
					parts = append(parts, text)
				}
				b = appendCell(b, strings.Join(parts, "; "))
			case col.head == "person":
				b = appendCell(b, cmp.Or(names[ofPerson+v.Str], names[row.Get("tag").Str]))
			case v.Type == gjson.String:
				text := v.Str
				if name := names[text]; name != "" && (slices.Contains(named[:], col.head)) {
					text = name
				}
				b = appendCell(b, text)
			default:
				b = append(b, v.Raw...) // a number, a boolean, or nothing
			}
		}
		b = append(b, "\r\n"...)
		return true
	})
	return b
}

// isFormula reports whether a spreadsheet would run a text as a formula (OWASP, "CSV
// Injection").
func isFormula(text string) bool {
	start := strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r < 0x20 || r == 0xfeff })
	first, _ := utf8.DecodeRuneInString(start)
	return strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", first) || strings.ContainsAny(text[:1], "\t\r\n")
}

// appendCell appends a text in quotes. A formula gets an apostrophe.
func appendCell(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	b = append(b, '"')
	if isFormula(text) {
		b = append(b, '\'')
	}
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}
