// Package codectest compares generated JSON code with encoding/json.
package codectest

import (
	"encoding/json"
	"reflect"
	"testing"

	"weir/pkg/wire/jsoncodec"
)

// Check fails unless the generated code of a type reads and writes every field as
// encoding/json does. v is a pointer to any value of the type. A field that the
// generated code lacks is named: run go generate in the package of the type.
func Check(t *testing.T, v interface {
	jsoncodec.Marshaler
	jsoncodec.Unmarshaler
}) {
	t.Helper()
	typ := reflect.TypeOf(v).Elem()
	full := reflect.New(typ)
	fill(full.Elem(), 1)
	for what, value := range map[string]any{"empty": reflect.New(typ).Interface(), "full": full.Interface()} {
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jsoncodec.Marshal(value.(jsoncodec.Marshaler))
		if err != nil || !same(got, want) {
			t.Errorf("%v, %s: written as\n%s\nwant\n%s, %v", typ, what, got, want, err)
		}
		read := reflect.New(typ).Interface()
		if err := jsoncodec.Unmarshal(want, read.(jsoncodec.Unmarshaler)); err != nil {
			t.Errorf("%v, %s: %v", typ, what, err)
		}
		plain := reflect.New(typ).Interface()
		if err := json.Unmarshal(want, plain); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, plain) {
			t.Errorf("%v, %s: read as\n%+v\nwant\n%+v", typ, what, read, plain)
		}
	}
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// fill sets every field to a value of its own that is not zero.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text <&> " + string(rune('a'+n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n%100 + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n%100 + 1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n) + 0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type() == rawMessage {
			v.SetBytes([]byte(`{"a":[1,"b"]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n+1)
		fill(v.Index(1), n+2)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n+i)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n+i)
			fill(value, n+i)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, n+i)
			}
		}
	}
}
