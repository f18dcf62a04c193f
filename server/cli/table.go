package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"golang.org/x/term"

	"weir/pkg/provider"
)

// cell is a text of a table, with a color on terminals.
type cell struct{ text, color string }

// Colors of ANSI terminals.
const (
	red, green, yellow = "31", "32", "33"
)

// clean returns a text without the characters that steer a terminal: names come from others.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// The values of a field of an answer. A gjson.Result is large: each call takes half of the code of
// v.Get(path).String().
func str(v gjson.Result, path string) string           { return v.Get(path).String() }
func num(v gjson.Result, path string) int64            { return v.Get(path).Int() }
func is(v gjson.Result, path string) bool              { return v.Get(path).Bool() }
func has(v gjson.Result, path string) bool             { return v.Get(path).Exists() }
func array(v gjson.Result, path string) []gjson.Result { return v.Get(path).Array() }

func plain(text string) cell { return cell{text: clean(text)} }

// column is a column of a table: the path of its value in a row of the API, and how it is
// shown, as a text without a function.
type column struct {
	title, path string
	none        string // in place of an empty text
	show        func(a *app, v gjson.Result) cell
	right       bool
	extra       bool // left out where the terminal is narrow
	whole       bool // left out before it is cut
	min         int  // its least width
}

// table is aligned text.
type table struct {
	columns []column
	rows    [][]cell
	wrap    bool // the last column, in place of cutting it
}

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

// texts adds a row without colors.
func (t *table) texts(texts ...string) {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i].text = clean(text)
	}
	t.add(row...)
}

// rows makes a table of the rows of the API.
func (a *app) rows(columns []column, rows []gjson.Result) table {
	t := table{columns: columns}
	for _, r := range rows {
		var line []cell
		for _, c := range columns {
			v := r
			if c.path != "" {
				v = r.Get(c.path)
			}
			show := c.show
			if show == nil {
				show = text
			}
			one := show(a, v)
			one.text = cmp.Or(one.text, c.none)
			line = append(line, one)
		}
		t.add(line...)
	}
	return t
}

// print writes a table, cut to the width of the terminal. There a list without rows is a sentence,
// and columns without values are left out.
func (a *app) print(t table) error {
	if _, ok := a.terminal(a.Stdout); ok {
		if len(t.rows) == 0 && a.empty != "" {
			_, err := fmt.Fprintln(a.Stdout, a.empty)
			return err
		}
		filled := t.without(func(i int) bool {
			return !slices.ContainsFunc(t.rows, func(row []cell) bool { return row[i].text != "" })
		})
		if len(filled.columns) > 0 {
			t = filled
		}
		t.columns = slices.Clone(t.columns)
		for i := range t.columns {
			t.columns[i].min = 0 // no row follows
		}
	}
	_, err := a.Stdout.Write(a.render(t, true))
	return err
}

// without returns a table without some columns.
func (t table) without(left func(i int) bool) table {
	out := table{wrap: t.wrap, rows: make([][]cell, len(t.rows))}
	for i, c := range t.columns {
		if left(i) {
			continue
		}
		out.columns = append(out.columns, c)
		for j, row := range t.rows {
			out.rows[j] = append(out.rows[j], row[i])
		}
	}
	return out
}

// enough is the width that is enough for most columns.
const enough = 12

// narrowed returns a table without the last extra columns, until the others have enough width.
func (t table) narrowed(width int) table {
	for {
		rows, least := t.cells(), t.least()
		if sum(least) > 0 { // rows follow, with the same columns
			rows = rows[:1]
		}
		total, last := -2, -1
		for i, w := range fit(rows, least, 0) {
			if !t.columns[i].whole {
				w = min(w, max(enough, utf8.RuneCountInString(t.columns[i].title)))
			}
			total += 2 + w
			if t.columns[i].extra {
				last = i
			}
		}
		if total <= width || last < 0 {
			return t
		}
		t = t.without(func(i int) bool { return i == last })
	}
}

// head returns the titles.
func (t table) head() []cell {
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i].text = c.title
	}
	return head
}

// cells returns the titles and the rows.
func (t table) cells() [][]cell { return append([][]cell{t.head()}, t.rows...) }

// least returns the least widths.
func (t table) least() []int {
	least := make([]int, len(t.columns))
	for i, c := range t.columns {
		least[i] = c.min
	}
	return least
}

// widths returns the widths of the columns of a terminal. Rows that follow have the same ones
// where their least widths are more than it has. Titles are cut last.
func (t table) widths(width int) []int {
	rows, least := t.cells(), t.least()
	if width == 0 {
		return fit(rows, least, 0)
	}
	if total := 2 * (len(least) - 1); sum(least)+total > width {
		rows = rows[:1]
	}
	widths := fit(rows, least, 0)
	for i, c := range t.columns {
		if least[i] = widths[i]; !c.whole {
			least[i] = utf8.RuneCountInString(c.title)
		}
	}
	widths = cut(widths, least, width)
	return cut(widths, make([]int, len(least)), width)
}

func sum(list []int) (n int) {
	for _, one := range list {
		n += one
	}
	return n
}

// width returns the width of the terminal, 0 without one.
func (a *app) width() int {
	f, ok := a.terminal(a.Stdout)
	if !ok {
		return 0
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return width
}

// render returns the lines of a table, those of the titles on demand.
func (a *app) render(t table, titles bool) []byte {
	width := a.width()
	colored := width > 0 && a.variable("NO_COLOR") == "" && a.variable("TERM") != "dumb"
	if width > 0 {
		t = t.narrowed(width)
	}
	var widths []int
	if t.wrap {
		widths = fit(t.rows, t.least(), 0)
		t = t.wrapped(widths, width)
	} else {
		widths = t.widths(width)
	}
	var b bytes.Buffer
	if titles {
		t.line(&b, t.head(), widths, false)
	}
	for _, row := range t.rows {
		t.line(&b, row, widths, colored)
	}
	return b.Bytes()
}

// wrapped returns a table with further rows for what is too long for its last column.
func (t table) wrapped(widths []int, width int) table {
	last := len(widths) - 1
	room := width - sum(widths[:last]) - 2*last
	if width == 0 || room < enough {
		return t
	}
	out := table{columns: t.columns}
	for _, row := range t.rows {
		for i, line := range Lines(row[last].text, room) {
			next := make([]cell, len(row))
			if i == 0 {
				copy(next, row)
			}
			next[last] = cell{line, row[last].color}
			out.add(next...)
		}
	}
	return out
}

// Lines splits a text into lines of at most a number of characters, at spaces if it can.
func Lines(text string, width int) (all []string) {
	rest := []rune(text)
	for len(rest) > width {
		at, next := width, width
		for i := width; i > 0; i-- {
			if rest[i] == ' ' {
				at, next = i, i+1
				break
			}
		}
		all, rest = append(all, string(rest[:at])), rest[next:]
	}
	return append(all, string(rest))
}

// line writes a row.
func (t *table) line(b *bytes.Buffer, row []cell, widths []int, colored bool) {
	start := b.Len()
	for i, c := range row {
		text := shortened(c.text, widths[i])
		pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(text), 0))
		if colored && c.color != "" {
			text = "\x1b[" + c.color + "m" + text + "\x1b[0m"
		}
		if t.columns[i].right {
			b.WriteString(pad + text + "  ")
		} else {
			b.WriteString(text + pad + "  ")
		}
	}
	b.Truncate(start + len(bytes.TrimRight(b.Bytes()[start:], " ")))
	b.WriteByte('\n')
}

// shortened cuts a text to a width: at its end, or in the middle of one word, such as a model id or an error
// code, since those of a kind begin alike.
func shortened(text string, width int) string {
	all := []rune(text)
	if len(all) <= width {
		return text
	}
	head, tail := max(width-1, 0), 0
	if !strings.Contains(text, " ") {
		head, tail = head-head/2, head/2
	}
	return string(all[:head]) + "…" + string(all[len(all)-tail:])
}

// minColumn is the least width of a column that is cut.
const minColumn = 3

// fit returns the widths of the columns: at least those, and cut to a width; 0 cuts nothing.
func fit(rows [][]cell, least []int, width int) []int {
	widths := slices.Clone(least)
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return cut(widths, least, width)
}

// cut cuts the widest columns until a line has at most width characters, but none below its least
// width; 0 cuts nothing.
func cut(widths, least []int, width int) []int {
	for width > 0 {
		total, widest := 2*(len(widths)-1), -1
		for i, w := range widths {
			total += w
			if w > max(least[i], minColumn) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if total <= width || widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// record prints the fields of an object, one a line.
func (a *app) record(v gjson.Result) error {
	t := table{columns: []column{{}, {}}, wrap: true}
	v.ForEach(func(key, value gjson.Result) bool {
		c := text(a, value)
		if value.Type == gjson.Number && value.Int() > 1e12 && !strings.HasSuffix(key.String(), "Ms") {
			c = when(a, value)
		}
		t.add(plain(key.String()), c)
		return true
	})
	if _, ok := a.terminal(a.Stdout); ok && len(t.rows) == 0 && a.empty != "" {
		_, err := fmt.Fprintln(a.Stdout, a.empty)
		return err
	}
	_, err := a.Stdout.Write(a.render(t, false))
	return err
}

// described are the rows whose fields are shown in words.
var described = map[string]bool{"account": true, "key": true, "budget": true, "combo": true, "destination": true, "model": true}

// labels are the names of fields that are not their words.
var labels = map[string]string{"id": "ID", "keyId": "key", "last4": "ends with", "authType": "credential", "hasKey": "has a credential",
	"healthAt": "health seen", "spentTodayUsd": "spent today", "spentMonthUsd": "spent this month"}

// hidden are fields that say nothing to people.
var hidden = map[string]bool{"object": true, "generation": true, "tokenGeneration": true, "secrets": true}

// describe prints the fields of a row in words, one a line, and those of an object in it likewise.
func (a *app) describe(ctx context.Context, c *client, v gjson.Result) error {
	if has(v, "keyId") {
		if err := a.learnNames(ctx, c); err != nil {
			return err
		}
	}
	t := table{columns: make([]column, 2), wrap: true}
	var add func(before string, v gjson.Result)
	add = func(before string, v gjson.Result) {
		v.ForEach(func(key, value gjson.Result) bool {
			label := cmp.Or(labels[key.Str], auditWords.Fields[key.Str], spaced(key.Str))
			label = strings.TrimSuffix(strings.TrimSuffix(label, " usd"), " at")
			shown := ""
			switch {
			case hidden[key.Str]:
			case value.IsObject() && key.Str == "providerSpecificData":
				add("", value)
			case value.IsObject():
				add(label+" ", value)
			case value.Type == gjson.True:
				shown = "yes"
			case value.Type == gjson.False:
				shown = "no"
			case strings.HasSuffix(key.Str, "Usd"):
				shown = costOf(value, v).text
			case key.Str == "limit" || key.Str == "spent" || key.Str == "reserved":
				shown = inUnit(v, key.Str, false).text
			case key.Str == "authType":
				shown = strings.ReplaceAll(value.Str, "apikey", "API key")
			case value.Type == gjson.Number && value.Num > 1e12:
				shown = when(a, value).text
			case key.Str == "keyId":
				shown = named(a, value).text
			case key.Str == "provider":
				shown = providerName(value.Str)
			case key.Str == "health":
				shown = health(a, value).text
			case value.IsArray():
				shown = words(a, value).text
			default:
				shown = text(a, value).text
			}
			if shown != "" {
				t.texts(capital(before+label), shown)
			}
			return true
		})
	}
	add("", v)
	_, err := a.Stdout.Write(a.render(t, false))
	return err
}

// The ways to show a value.

func text(_ *app, v gjson.Result) cell {
	if v.IsArray() {
		var all []string
		for _, one := range v.Array() {
			all = append(all, one.String())
		}
		return plain(strings.Join(all, ","))
	}
	return plain(v.String())
}

func usd(_ *app, v gjson.Result) cell {
	if !v.Exists() {
		return cell{}
	}
	return cell{text: dollars(v.Float(), false)}
}

// dollars returns an amount, with up to four decimals below a dollar and two digits below
// these, as money of the dashboard does: a half is rounded up; a lower bound, if a part of it is not
// known, down.
func dollars(n float64, partly bool) string {
	decimals, sign := 2, "$"
	switch {
	case n > 0 && n < 0.0001:
		decimals = 1 - int(math.Floor(math.Log10(n)))
	case n < 1:
		decimals = 4
	}
	half, scale := 0.5, math.Pow10(decimals)
	if partly {
		half, sign = 0, "≥ $"
	}
	n = math.Floor(n*scale+half+1e-6) / scale // 1e-6 for what a float lacks
	text := strconv.FormatFloat(n, 'f', decimals, 64)
	for end := strings.IndexByte(text, '.') + 3; len(text) > end && text[len(text)-1] == '0'; {
		text = text[:len(text)-1]
	}
	return sign + text
}

// spentMonth shows what a key or an account has spent this month, by its row.
func spentMonth(_ *app, row gjson.Result) cell {
	v := row.Get("spentMonthUsd")
	if !v.Exists() {
		return cell{}
	}
	return costOf(v, row)
}

// cost shows the cost of a row of usage.
func cost(_ *app, row gjson.Result) cell { return costOf(row.Get("costUsd"), row) }

// costOf shows an amount that the unpriced attempts of a row are not in.
func costOf(amount, row gjson.Result) cell {
	n, partly := amount.Float(), num(row, "unpricedAttempts") > 0
	if partly && n == 0 {
		return cell{text: "unknown"}
	}
	return approximate(dollars(n, partly), row)
}

// approximate marks what estimated tokens are a part of; the mark of a lower bound goes before.
func approximate(text string, row gjson.Result) cell {
	if (num(row, "estimatedAttempts") > 0 || is(row, "estimated")) && !strings.HasPrefix(text, "≥") {
		text = "≈ " + text
	}
	return cell{text: text}
}

// tokens shows the tokens of a row of usage, or of a request.
func tokens(field string) func(*app, gjson.Result) cell {
	return func(_ *app, row gjson.Result) cell {
		v := row.Get(field)
		if v.Int() == 0 {
			return plain(v.String())
		}
		return approximate(v.String(), row)
	}
}

// requestCost shows the cost of a request; that of one without an answer is empty.
func requestCost(_ *app, row gjson.Result) cell {
	n, known := row.Get("costUsd").Float(), is(row, "priced")
	switch {
	case known || n > 0:
		return approximate(dollars(n, !known), row)
	case num(row, "inputTokens") > 0 || num(row, "unpricedParts.#") > 0:
		return cell{text: "unknown"}
	}
	return cell{}
}

// spent shows what is used of a budget, limit what may be.
func spent(_ *app, row gjson.Result) cell {
	return inUnit(row, "spent", num(row, "unpricedCalls") > 0)
}

func limit(_ *app, row gjson.Result) cell { return inUnit(row, "limit", false) }

func inUnit(row gjson.Result, path string, partly bool) cell {
	v := row.Get(path)
	if str(row, "unit") == "usd" {
		return cell{text: dollars(v.Float(), partly)}
	}
	return plain(v.String())
}

// unserved returns the requests of a row of usage that no account served.
func unserved(row gjson.Result) int64 {
	return num(row, "providerFailed") + num(row, "noAccount")
}

func failed(_ *app, row gjson.Result) cell { return cell{text: strconv.FormatInt(unserved(row), 10)} }

// when shows Unix milliseconds in local time.
func when(_ *app, v gjson.Result) cell {
	if v.Int() == 0 {
		return cell{}
	}
	return cell{text: time.UnixMilli(v.Int()).Format("2006-01-02 15:04")}
}

// clock shows the time of day, and the date where it is not that of today.
func clock(a *app, v gjson.Result) cell {
	at := time.UnixMilli(v.Int())
	text := at.Format("15:04:05")
	if now := a.Now(); at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		text = at.Format("01-02 15:04")
	}
	return cell{text: text}
}

// outcome shows what became of a request, in a word or two.
func outcome(a *app, v gjson.Result) cell {
	c := state(a, v)
	if c.text == "provider_failed" {
		c.text = "failed"
	}
	c.text = strings.ReplaceAll(c.text, "_", " ")
	return c
}

// credential shows how a provider is signed in to.
func credential(_ *app, v gjson.Result) cell {
	switch auth := v.String(); auth {
	case "bearer", "key":
		return cell{text: "API key"}
	case "aws":
		return cell{text: "AWS keys"}
	case "google":
		return cell{text: "Google"}
	default:
		return plain(auth)
	}
}

// seconds shows milliseconds: 340 ms, 12.3 s.
func seconds(_ *app, v gjson.Result) cell {
	switch {
	case !v.Exists():
		return cell{}
	case v.Int() < 1000:
		return cell{text: milliseconds(v.Int())}
	}
	return cell{text: fmt.Sprintf("%.1f s", float64(v.Int())/1000)}
}

// percentile shows milliseconds that are the middle of a range. The shortest, 16, stand for all below.
func percentile(a *app, v gjson.Result) cell {
	c := seconds(a, v)
	if v.Int() == 16 {
		c.text = "≤ " + c.text
	} else if c.text != "" {
		c.text = "≈ " + c.text
	}
	return c
}

// wait shows milliseconds, and no wait as nothing.
func wait(a *app, v gjson.Result) cell {
	if v.Int() == 0 {
		return cell{}
	}
	return seconds(a, v)
}

// state colors the words of health and outcomes.
func state(_ *app, v gjson.Result) cell {
	c := plain(v.String())
	switch c.text {
	case "ready", "ok", "active", "succeeded", "operational":
		c.color = green
	case "untested", "limited", "left", "paused", "inactive", "cooling", "degraded", "":
		c.color = yellow
	default:
		c.color = red
	}
	return c
}

// accountState shows the state of an account.
func accountState(a *app, account gjson.Result) cell {
	return health(a, gjson.Result{Type: gjson.String, Str: stateOf(account)})
}

// lastError shows the last error of an account or a destination that does not work.
func lastError(_ *app, row gjson.Result) cell {
	status := str(row, "status")
	if works := cmp.Or(str(row, "health"), "ready") == "ready"; works && (status == "active" || status == "inactive") {
		return cell{}
	}
	return plain(str(row, "lastError"))
}

// appliesTo shows whose a budget is.
func appliesTo(a *app, row gjson.Result) cell {
	tag := row.Get("tag")
	who := plain(tag.String())
	if strings.HasPrefix(who.text, "person=") {
		who = personOf(a, tag)
	}
	all := []string{named(a, row.Get("keyId")).text, who.text, clean(str(row, "tool")), words(a, row.Get("models")).text}
	all = slices.DeleteFunc(all, func(one string) bool { return one == "" })
	return cell{text: cmp.Or(strings.Join(all, ", "), "all requests")}
}

// words shows a list with spaces, at which it can be wrapped.
func words(a *app, v gjson.Result) cell {
	return cell{text: strings.ReplaceAll(text(a, v).text, ",", ", ")}
}

// health shows the state of an account in words: key refused.
func health(a *app, v gjson.Result) cell {
	c := state(a, v)
	c.text = strings.ReplaceAll(c.text, "_", " ")
	return c
}

// named shows the name of a key or account, or of one that is gone.
func named(a *app, v gjson.Result) cell { return plain(cmp.Or(a.nameOf(v.String()), v.String())) }

// nameOf returns the name of a key or account, "" without one.
func (a *app) nameOf(id string) string {
	if name, ok := a.known[id]; ok || a.lastName == nil || id == "" {
		return name
	}
	return a.lastName(id)
}

// changedFields returns those of the fields of a request that were not sent, or those that weir has
// set: "max_tokens=4096".
func changedFields(all []string, set bool) string {
	all = slices.DeleteFunc(slices.Clone(all), func(f string) bool { return strings.Contains(f, "=") != set })
	return strings.Join(all, ", ")
}

func fields(set bool) func(a *app, v gjson.Result) cell {
	return func(_ *app, v gjson.Result) cell {
		var all []string
		for _, f := range v.Array() {
			all = append(all, f.String())
		}
		return plain(changedFields(all, set))
	}
}

// provided shows the name of a provider.
func provided(_ *app, v gjson.Result) cell { return plain(providerName(v.String())) }

// providerOf shows the provider of a row: without an account or a model beside it a server of one's own is named
// after its account.
func providerOf(a *app, row gjson.Result) cell {
	id, name := str(row, "provider"), ""
	if str(row, "connectionId") == "" && str(row, "model") == "" {
		name = a.known[id]
		if d := provider.Lookup(id); d != nil && d.Compatible && name == "" && a.lastName != nil {
			name = d.Name + " (deleted)"
		}
	}
	return plain(cmp.Or(name, providerName(id)))
}

// providerName returns the name of a provider. That of a server of one's own is the one of its API: its id has
// random digits.
func providerName(id string) string {
	if d := provider.Lookup(id); d != nil {
		return d.Name
	}
	return id
}

// personOf shows the name of a person: of a tag person=p_…, or of an actor person:p_….
func personOf(a *app, v gjson.Result) cell {
	for _, before := range [...]string{"person=", "person:"} {
		if id, ok := strings.CutPrefix(v.String(), before); ok {
			return plain(cmp.Or(a.known[id], id))
		}
	}
	return named(a, v)
}

// acted shows an action of the audit log in words: Changed API key.
func acted(_ *app, v gjson.Result) cell { return plain(actionText(v.String())) }

// changed shows the names of fields.
func changed(_ *app, v gjson.Result) cell {
	var names []string
	for _, f := range v.Array() {
		names = append(names, fieldText(f.String()))
	}
	return plain(strings.Join(names, ", "))
}

func servedModel(_ *app, v gjson.Result) cell {
	if m := str(v, "model"); m != "" {
		return plain(m)
	}
	return plain(str(v, "asked"))
}

// left shows the windows of a quota as requests 80%, tokens 12%.
func left(_ *app, v gjson.Result) cell {
	var all []string
	for _, w := range v.Array() {
		name := strings.TrimSpace(str(w, "name") + " " + str(w, "model"))
		all = append(all, fmt.Sprintf("%s %.0f%%", name, 100*w.Get("left").Float()))
	}
	return plain(strings.Join(all, ", "))
}

// counts shows an object of numbers as key refused 1, timeout 2.
func counts(_ *app, v gjson.Result) cell {
	var all []string
	v.ForEach(func(name, n gjson.Result) bool {
		all = append(all, strings.ReplaceAll(name.String(), "_", " ")+" "+n.String())
		return true
	})
	return plain(strings.Join(all, ", "))
}

func keyState(a *app, v gjson.Result) cell {
	now := a.Now().UnixMilli()
	switch at := num(v, "expiresAt"); {
	case at > 0 && at <= now:
		return cell{"expired", red}
	case is(v, "invalid"):
		return cell{"invalid", red}
	case has(v, "pausedAt"):
		return cell{"paused", yellow}
	case num(v, "limitedUntil") > now:
		return cell{"limited", yellow}
	}
	return cell{"ok", green}
}

// printable is clean for a text of several lines.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		parts := strings.Split(l, "\t")
		for j := range parts {
			parts[j] = clean(parts[j])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}
