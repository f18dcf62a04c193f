package metrics

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Part is families that have the label machine in common; none if Machine is "".
type Part struct {
	Machine  string
	Families []Family
}

// Text returns parts in a format: of each family, in the order in which they come first, the
// series of all parts.
func Text(parts []Part, f Format) []byte {
	w := writer{open: f.OpenMetrics}
	done := map[string]bool{}
	for i := range parts {
		for j := range parts[i].Families {
			name := parts[i].Families[j].Name
			if done[name] {
				continue
			}
			done[name] = true
			w.head(&parts[i].Families[j])
			for _, p := range parts[i:] {
				for k := range p.Families {
					if p.Families[k].Name == name {
						w.series(&p.Families[k], p.Machine)
					}
				}
			}
		}
	}
	if f.OpenMetrics {
		w.b = append(w.b, "# EOF\n"...)
	}
	return w.b
}

type writer struct {
	b    []byte
	open bool // OpenMetrics
	name string
}

// head writes what stands before the series of a family.
func (w *writer) head(f *Family) {
	w.name = f.prometheusName()
	total := ""
	if f.Type == Counter {
		total = "_total"
	}
	shown := w.name + total
	if w.open {
		shown = w.name
	}
	w.b = append(w.b, "# HELP "+shown+" "...)
	w.text(f.Help, w.open)
	w.b = append(w.b, "\n# TYPE "+shown+" "+typeNames[f.Type]+"\n"...)
	if unit := units[f.Unit]; w.open && unit != "" {
		w.b = append(w.b, "# UNIT "+shown+" "+unit[1:]+"\n"...)
	}
	w.name += total
}

// series writes the series of a family.
func (w *writer) series(f *Family, machine string) {
	for i := range f.Series {
		s := &f.Series[i]
		if f.Type != Histogram {
			w.line("", f, s, machine, "")
			w.number(s.Value)
			continue
		}
		var count int64
		for j, n := range s.Buckets {
			count += n
			le := "+Inf"
			if j < len(f.Bounds) {
				le = strconv.FormatFloat(f.Bounds[j], 'f', -1, 64)
			}
			w.line("_bucket", f, s, machine, le)
			w.number(float64(count))
		}
		w.line("_sum", f, s, machine, "")
		w.number(s.Value)
		w.line("_count", f, s, machine, "")
		w.number(float64(count))
	}
}

// line writes the name and the labels of a sample.
func (w *writer) line(suffix string, f *Family, s *Series, machine, le string) {
	w.b = append(w.b, w.name+suffix...)
	separator := byte('{')
	label := func(name, value string) {
		w.b = append(append(append(w.b, separator), name...), `="`...)
		w.text(value, true)
		w.b = append(w.b, '"')
		separator = ','
	}
	if machine != "" {
		label("machine", machine)
	}
	for i, v := range s.Values {
		label(underscored(f.Labels[i]), v)
	}
	if le != "" {
		label("le", le)
	}
	if separator == ',' {
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ' ')
}

func (w *writer) number(v float64) {
	switch {
	case math.IsInf(v, 1):
		w.b = append(w.b, "+Inf"...)
	case math.IsInf(v, -1):
		w.b = append(w.b, "-Inf"...)
	default:
		w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
	}
	w.b = append(w.b, '\n')
}

// text writes a text of a person, quotes escaped if quoted. Control characters, and bytes
// that are not UTF-8, become U+FFFD: parsers differ about them.
func (w *writer) text(s string, quoted bool) {
	for _, c := range s {
		switch {
		case c == '\\':
			w.b = append(w.b, `\\`...)
		case c == '\n':
			w.b = append(w.b, `\n`...)
		case c == '"' && quoted:
			w.b = append(w.b, `\"`...)
		case c < 0x20, c == 0x7f:
			w.b = utf8.AppendRune(w.b, utf8.RuneError)
		default:
			w.b = utf8.AppendRune(w.b, c)
		}
	}
}

// Format is a format of an answer.
type Format struct {
	OpenMetrics bool
	Escaping    bool // the client asks for a way of escaping names
}

// ContentType returns the type of a text. Names have no character that needs escaping, so
// every way of it has the same result.
func (f Format) ContentType() string {
	t := "text/plain; version=0.0.4; charset=utf-8"
	if f.OpenMetrics {
		t = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	if f.Escaping {
		t += "; escaping=underscores"
	}
	return t
}

// Accepted returns the format that the field Accept of a request prefers: the text format
// unless OpenMetrics has a higher weight.
func Accepted(accept string) (f Format) {
	text, open := 0.0, 0.0
	for entry := range strings.SplitSeq(accept, ",") {
		kind, parameters, _ := strings.Cut(entry, ";")
		q, escaping, version := 1.0, false, ""
		for p := range strings.SplitSeq(parameters, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			value = strings.Trim(value, `"`)
			switch strings.ToLower(name) {
			case "q":
				if v, err := strconv.ParseFloat(value, 64); err == nil && v >= 0 && v <= 1 {
					q = v
				}
			case "escaping":
				escaping = true
			case "version":
				version = value
			}
		}
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/openmetrics-text":
			if version == "" || version == "1.0.0" {
				open = max(open, q)
				f.Escaping = f.Escaping || escaping
			}
		case "text/plain", "text/*", "*/*":
			text = max(text, q)
			f.Escaping = f.Escaping || escaping
		}
	}
	f.OpenMetrics = open > text
	return f
}
