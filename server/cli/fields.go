package cli

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// field is a flag and where its value goes: a field of the body, one of an object in it, ?name
// of the query, or "" if the command reads it itself. none as the value of a field is null.
type field struct {
	flag, name  string
	value, help string
	as          func(a *app, flag, text string) (any, error) // nil is a text
}

// toggle is the value of flags that are on or off.
const toggle = "toggle"

// add adds the flag to a command, whose full name is full.
func (f field) add(c *cobra.Command, full string) {
	long, short, _ := strings.Cut(f.flag, ",")
	help := f.help
	values := choiceOf(full, "--"+long)
	if values != nil {
		help = values.help(help)
	}
	switch f.value {
	case toggle:
		c.Flags().BoolP(long, short, false, help)
	default:
		c.Flags().StringArrayP(long, short, nil, help)
		c.Flags().Lookup(long).Annotations = map[string][]string{"setting": {f.value, ""}}
	}
	if values != nil {
		_ = c.RegisterFlagCompletionFunc(long, values.complete)
	}
}

// check returns an error if the flag has a value that it does not take.
func (f field) check(c *cobra.Command, full string) error {
	long, _, _ := strings.Cut(f.flag, ",")
	values := choiceOf(full, "--"+long)
	if values == nil {
		return nil
	}
	texts, _ := c.Flags().GetStringArray(long)
	for _, text := range texts {
		if text == "none" && f.name != "" && !strings.HasPrefix(f.name, "?") {
			continue
		}
		if err := values.check("--"+long, text); err != nil {
			return err
		}
	}
	return nil
}

// read sets the value of a flag in the call.
func (f field) read(a *app, c *cobra.Command, in *input) error {
	long, _, _ := strings.Cut(f.flag, ",")
	if !c.Flags().Changed(long) {
		return nil
	}
	if f.value == toggle {
		on, _ := c.Flags().GetBool(long)
		if in.values[long] = "true"; f.name != "" && on {
			in.set(f.name, on)
		} else if !on {
			delete(in.values, long)
		}
		return nil
	}
	texts, _ := c.Flags().GetStringArray(long)
	for _, text := range texts {
		in.values[long] = text
		if strings.HasSuffix(f.name, ".") { // a variable, NAME=VALUE
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				return Usagef("--%s %s: write NAME=VALUE", long, text)
			}
			var v any = value
			if f.as != nil {
				var err error
				if v, err = f.as(a, long, value); err != nil {
					return err
				}
			}
			in.set(f.name+name, v)
			continue
		}
		var v any = text
		var err error
		if text == "none" && !strings.HasPrefix(f.name, "?") {
			v = nil
		} else if f.as != nil {
			v, err = f.as(a, long, text)
		}
		if err != nil {
			return err
		}
		if f.name != "" {
			in.set(f.name, v)
		}
	}
	return nil
}

func asList(_ *app, _, text string) (any, error) { return strings.Split(text, ","), nil }

func asNumber(_ *app, flag, text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, Usagef("--%s %s: it must be a number", flag, text)
	}
	return n, nil
}

// asMaximum reads a limit of requests or tokens, of which the API takes 0 for none.
func asMaximum(a *app, flag, text string) (any, error) {
	n, err := asNumber(a, flag, text)
	if err == nil && n == float64(0) {
		err = Usagef("--%s %s: it must be greater than 0; none removes the limit", flag, text)
	}
	return n, err
}

// asRows reads how many rows are listed, which -n says too.
func asRows(most int) func(a *app, flag, text string) (any, error) {
	return func(_ *app, flag, text string) (any, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, Usagef("-n, --%s %s: it must be an integer from 1 to %d", flag, text, most)
		}
		return n, nil
	}
}

// asReference reads a secret that the value of a flag refers to.
func asReference(a *app, flag, text string) (any, error) { return a.refer("--"+flag, text) }

// asWeights reads a=3,b=1.
func asWeights(_ *app, flag, text string) (any, error) {
	out := map[string]int{}
	for _, one := range strings.Split(text, ",") {
		name, weight, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(weight)
		if err != nil {
			return nil, Usagef("--%s %s: write NAME=NUMBER between commas", flag, text)
		}
		out[name] = n
	}
	return out, nil
}

// asRules reads ROLE:CLAIM=VALUE,… for all machines, or JSON.
func asRules(_ *app, flag, text string) (any, error) {
	if strings.HasPrefix(text, "[") && gjson.Valid(text) {
		return gjson.Parse(text).Value(), nil
	}
	var out []map[string]any
	for _, one := range strings.Split(text, ",") {
		role, rule, _ := strings.Cut(one, ":")
		claim, value, ok := strings.Cut(rule, "=")
		if !ok {
			return nil, Usagef("--%s %s: write ROLE:CLAIM=VALUE between commas, or JSON", flag, text)
		}
		out = append(out, map[string]any{"role": role, "claim": []string{claim}, "value": value, "machines": []string{"*"}})
	}
	return out, nil
}

// asSeconds reads a duration.
func asSeconds(_ *app, flag, text string) (any, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok && err != nil {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return nil, Usagef("--%s %s: write a time such as 1d, 2h, 10m or 0s", flag, text)
	}
	return int(d.Seconds()), nil
}

// asTime reads a time to come, asPast a time that has passed. They return Unix milliseconds.
func asTime(a *app, flag, text string) (any, error) { return a.time(flag, text, 1) }
func asPast(a *app, flag, text string) (any, error) { return a.time(flag, text, -1) }

// time reads a duration from now on (sign 1) or before now (-1), a day, or a time of RFC 3339.
func (a *app) time(flag, text string, sign int) (any, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 {
			return a.Now().AddDate(0, 0, sign*n).UnixMilli(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return a.Now().Add(time.Duration(sign) * d).UnixMilli(), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return nil, Usagef("--%s %s: write 30d, 12h, a day such as 2026-12-31, or a time of RFC 3339", flag, text)
}

// limitForm is an amount, a unit and a window.
var limitForm = regexp.MustCompile(`^([0-9.]+)([a-zA-Z]*)/(\w+)$`)

// asLimit reads 20/month, 20usd/month, 500000tokens/day or 1000requests/day.
func asLimit(_ *app, flag, text string) (any, error) {
	name := "LIMIT" // an argument
	if flag != "" {
		name = "--" + flag
	}
	m := limitForm.FindStringSubmatch(text)
	if m == nil {
		return nil, Usagef("%s %s: write AMOUNT/WINDOW, as in 20/month (USD), 500000tokens/day or 1000requests/day", name, text)
	}
	unit := cmp.Or(m[2], "usd")
	if units := enumOf(reflect.TypeFor[FileBudget](), "unit"); !slices.Contains(units, unit) {
		return nil, Mistyped(name+" "+text+": the unit", m[2], m[2], units)
	}
	if windows := enumOf(reflect.TypeFor[FileBudget](), "window"); !slices.Contains(windows, m[3]) {
		return nil, Mistyped(name+" "+text+": the window", m[3], m[3], windows)
	}
	limit, err := strconv.ParseFloat(m[1], 64)
	if err != nil || limit <= 0 {
		return nil, Usagef("%s %s: the amount must be a number greater than 0", name, text)
	}
	return map[string]any{"limit": limit, "unit": unit, "window": m[3]}, nil
}
