package manage

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Input reads the fields of an object that someone sent. The first mistake is
// kept in err, with the field it is about; nothing after it counts.
type Input struct {
	at     string // where the object lies, "connections[2]." or ""
	names  []string
	values map[string]gjson.Result
	Err    *apierr.Error
}

// readObject checks a document strictly and reads its object. A name that
// comes twice is refused, in the whole document.
func readObject(raw []byte, at string) *Input {
	in := &Input{at: at}
	if len(raw) == 0 {
		in.Err = apierr.Invalid("", "The body is empty.")
		return in
	}
	var c jsonscan.Cursor
	c.Reset(raw)
	if c.Kind() != jsonscan.Object {
		in.Err = apierr.Invalid("", "The body must be a JSON object.")
		return in
	}
	c.Skip()
	if err := c.End(); err != nil {
		errors.As(endpoint.BadJSON(err), &in.Err)
		return in
	}
	if c.Lone() {
		in.Err = apierr.Invalid("", "The body has half a surrogate pair.")
		return in
	}
	in.read(gjson.ParseBytes(raw))
	return in
}

// sub reads an object within a checked document.
func sub(v gjson.Result, at string) *Input {
	in := &Input{at: at + "."}
	if !v.IsObject() {
		in.Err = apierr.Invalid(at, "%s must be an object.", at)
		return in
	}
	in.read(v)
	return in
}

func (in *Input) read(v gjson.Result) {
	in.values = map[string]gjson.Result{}
	v.ForEach(func(k, v gjson.Result) bool {
		name := k.String()
		if _, twice := in.values[name]; twice {
			in.fail(name, "is repeated; send it once")
		}
		in.names = append(in.names, name)
		in.values[name] = v
		return true
	})
}

func (in *Input) fail(name, format string, args ...any) {
	if in.Err == nil {
		field := in.at + name
		if len(field) > 100 || !utf8.ValidString(field) {
			field = in.at + "…"
		}
		in.Err = apierr.Invalid(field, "%s", apierr.Sentence(field+" "+fmt.Sprintf(format, args...)))
	}
}

// failed returns the mistake, or nil.
func (in *Input) failed() error {
	if in.Err == nil {
		return nil
	}
	return in.Err
}

// only refuses every field that is not named.
func (in *Input) only(names ...string) {
	for _, n := range in.names {
		if !slices.Contains(names, n) {
			in.fail(n, "%s", unknownField(n, names))
		}
	}
}

// text returns a string of at most max characters without control characters,
// trimmed. null is "".
func (in *Input) text(name string, max int) (value string, given bool) {
	v, ok := in.values[name]
	if !ok {
		return "", false
	}
	switch {
	case v.Type == gjson.Null:
		return "", true
	case v.Type != gjson.String:
		in.fail(name, "must be a string")
		return "", true
	}
	s := strings.TrimSpace(v.Str)
	switch {
	case utf8.RuneCountInString(s) > max:
		in.fail(name, "is longer than %d characters", max)
	case !storage.IsPrintable(s):
		r, at := storage.Hidden(s)
		in.fail(name, "contains the invisible or direction-changing character U+%04X at position %d", r, at)
	}
	return s, true
}

// badName returns the end of an error text that names the first character that
// is not a letter, digit, dot, dash or underscore; "" without one.
func badName(s string) string {
	at := 0
	for _, r := range s {
		at++
		if r >= 0x80 || !nameByte(byte(r)) {
			if hiddenRune, _ := storage.Hidden(string(r)); hiddenRune != 0 || r == ' ' {
				return fmt.Sprintf("; character %d is U+%04X", at, r)
			}
			return fmt.Sprintf("; character %d is “%c”", at, r)
		}
	}
	return ""
}

func nameByte(c byte) bool {
	return lowerDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
}

// int returns an integer within bounds; null is 0.
func (in *Input) int(name string, least, most int64) (value int64, given bool) {
	v, ok := in.values[name]
	if !ok {
		return 0, false
	}
	if v.Type == gjson.Null {
		return 0, true
	}
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if v.Type != gjson.Number || err != nil || n < least || n > most {
		in.fail(name, "must be an integer from %d to %d", least, most)
		return 0, true
	}
	return n, true
}

// isNull reports whether a field is null.
func (in *Input) isNull(name string) bool {
	v, ok := in.values[name]
	return ok && v.Type == gjson.Null
}

func (in *Input) bool(name string) (value, given bool) {
	v, ok := in.values[name]
	if !ok {
		return false, false
	}
	if !v.IsBool() {
		in.fail(name, "must be true or false")
	}
	return v.Bool(), true
}

// time returns a time as Unix milliseconds, from that or from RFC 3339; null
// is 0.
func (in *Input) time(name string) (ms int64, given bool) {
	v, ok := in.values[name]
	if !ok {
		return 0, false
	}
	const last = 253402300799999 // the year 9999
	switch v.Type {
	case gjson.Null:
		return 0, true
	case gjson.String:
		if t, err := time.Parse(time.RFC3339, v.Str); err == nil && t.UnixMilli() >= 0 && t.UnixMilli() <= last {
			return t.UnixMilli(), true
		}
	case gjson.Number:
		if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil && n >= 0 && n <= last {
			return n, true
		}
	}
	in.fail(name, "must be a time: Unix milliseconds or RFC 3339")
	return 0, true
}

// texts returns an array of strings, trimmed, without repeats; null is empty.
func (in *Input) texts(name string, most, max int) (values []string, given bool) {
	v, ok := in.values[name]
	if !ok {
		return nil, false
	}
	if v.Type == gjson.Null {
		return nil, true
	}
	if !v.IsArray() {
		in.fail(name, "must be an array of strings")
		return nil, true
	}
	items := v.Array()
	if len(items) > most {
		in.fail(name, "has more than %d entries", most)
		return nil, true
	}
	seen := map[string]bool{}
	for i, item := range items {
		s := strings.TrimSpace(item.Str)
		switch {
		case item.Type != gjson.String:
			in.fail(name+"["+strconv.Itoa(i)+"]", "must be a string")
		case s == "":
			in.fail(name+"["+strconv.Itoa(i)+"]", "is empty")
		case utf8.RuneCountInString(s) > max || !storage.IsPrintable(s):
			in.fail(name+"["+strconv.Itoa(i)+"]", "is too long or has control characters")
		}
		if !seen[s] {
			seen[s] = true
			values = append(values, s)
		}
	}
	return values, true
}

// IsAlias reports whether s may stand before the slash of a model string
// (docs/reference/reliability.md, T44; capitals are allowed, connections of
// older installations have them).
func IsAlias(s string) bool {
	return len(s) <= 64 && s != "" && s[0] != '.' && s[0] != '_' && s[0] != '-' && only(s, func(c byte) bool {
		return lowerDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

// isModelRef reports whether s is <alias or provider id>/<model>.
func isModelRef(s string) bool {
	alias, model, ok := strings.Cut(s, "/")
	return ok && len(alias) <= 96 && (IsAlias(alias) || provider.Lookup(alias) != nil) && provider.CheckModel(model) == nil
}

func only(s string, ok func(c byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}

func lowerDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
