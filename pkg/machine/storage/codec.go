package storage

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/mailru/easyjson/jlexer"
	"github.com/mailru/easyjson/jwriter"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/jsoncodec"
)

// usageRows is a row that has several rows of usage.
//
//easyjson:json
type usageRows []usage.Row

// recentList is the row of the last hour.
//
//easyjson:json
type recentList []RecentUsage

// decode reads JSON into v. The rows that the first call of a start reads have
// generated code (docs/decisions/0140-generated-codecs.md). The types are named one by
// one: a type that embeds one of them has its methods, but more fields.
func decode(raw []byte, v any) error {
	switch v := v.(type) {
	case *meta:
		return jsoncodec.Unmarshal(raw, v)
	case *Connection:
		return parts(raw, &v.Connection, &v.Given)
	case *Key:
		return parts(raw, &v.Key, &v.Own)
	case *Combo:
		return parts(raw, &v.Combo, &v.Own)
	case *CustomModel:
		return parts(raw, &v.CustomModel, &v.Own)
	case *DisabledModels:
		return parts(raw, &v.DisabledModels, &v.Own)
	case *Budget:
		return parts(raw, &v.Budget, &v.Own)
	case *Alias:
		return jsoncodec.Unmarshal(raw, v)
	case *Health:
		return jsoncodec.Unmarshal(raw, v)
	case *KeyUse:
		return jsoncodec.Unmarshal(raw, v)
	case *ConnUse:
		return jsoncodec.Unmarshal(raw, v)
	case *UsageRow:
		return jsoncodec.Unmarshal(raw, v)
	case *[]RecentUsage:
		return jsoncodec.Unmarshal(raw, (*recentList)(v))
	case *[]usage.Row:
		return jsoncodec.Unmarshal(raw, (*usageRows)(v))
	case *captureList:
		return jsoncodec.Unmarshal(raw, v)
	case *requestList:
		return jsoncodec.Unmarshal(raw, v)
	case *[]store.Request:
		return jsoncodec.Unmarshal(raw, (*requestRows)(v))
	case *store.Settings:
		return jsoncodec.Unmarshal(raw, v)
	case *int:
		n, err := strconv.Atoi(string(raw))
		*v = n
		return err
	case *int64:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		*v = n
		return err
	}
	return json.Unmarshal(raw, v)
}

// parts reads a record from its row, in whose object its parts stand beside each other.
func parts(raw []byte, all ...jsoncodec.Unmarshaler) error {
	for _, part := range all {
		if err := jsoncodec.Unmarshal(raw, part); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the JSON of v if its type has generated code.
func generated(v any) (raw []byte, ok bool) {
	var m jsoncodec.Marshaler
	switch v := v.(type) {
	case meta:
		m = v
	case Health:
		m = v
	case KeyUse:
		m = v
	case ConnUse:
		m = v
	case UsageRow:
		m = v
	case []RecentUsage:
		m = recentList(v)
	case []usage.Row:
		m = usageRows(v)
	case captureList:
		m = v
	case requestList:
		m = v
	case *store.Request:
		m = v
	case *store.Machine:
		m = v
	case rpc.Same:
		m = v
	case rpc.Reported:
		m = v
	case int:
		return strconv.AppendInt(nil, int64(v), 10), true
	case int64:
		return strconv.AppendInt(nil, v, 10), true
	default:
		return nil, false
	}
	raw, err := jsoncodec.Marshal(m)
	return raw, err == nil
}

// generations are numbers by the name of a collection. They are written in the order
// of the names: a row that has not changed has the same bytes.
type generations map[string]int64

// MarshalEasyJSON implements jsoncodec.Marshaler.
func (g generations) MarshalEasyJSON(w *jwriter.Writer) {
	w.RawByte('{')
	for i, name := range slices.Sorted(maps.Keys(g)) {
		if i > 0 {
			w.RawByte(',')
		}
		w.String(name)
		w.RawByte(':')
		w.Int64(g[name])
	}
	w.RawByte('}')
}

// UnmarshalEasyJSON implements jsoncodec.Unmarshaler.
func (g *generations) UnmarshalEasyJSON(l *jlexer.Lexer) {
	*g = generations{}
	l.Delim('{')
	for !l.IsDelim('}') {
		name := l.String()
		l.WantColon()
		(*g)[name] = l.Int64()
		l.WantComma()
	}
	l.Delim('}')
}
