package deliver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/internal/golden"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// opened are destinations, one of each kind and service.
func opened() (list []*Opened) {
	add := func(name, kind string, values ...string) {
		d := &Opened{MachineID: "demo", Values: map[string]secret.Secret{}, Key: []byte("0123456789abcdef0123456789abcdef"), Now: noon}
		d.ID, d.Name, d.Kind = "d1", name, kind
		for i := 0; i < len(values); i += 2 {
			d.Values[values[i]] = secret.New(values[i+1])
		}
		list = append(list, d)
	}
	add("webhook", "webhook", "url", "https://hooks.example.com/a?sig=1")
	add("slack", "slack", "url", "https://hooks.slack.com/services/T/B/x")
	add("discord", "discord", "url", "https://discord.com/api/webhooks/1/x")
	add("teams", "teams", "url", "https://prod-1.westus.logic.azure.com/workflows/1/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sig=x")
	add("google-chat", "google-chat", "url", "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t")
	add("ntfy", "ntfy", "url", "https://ntfy.sh/my-topic", "token", "tk_1")
	for _, s := range mailServices {
		add("email "+s.name, "email", "service", s.name, "token", "token-1", "from", "Weir, the gateway <weir@example.com>", "to", "a@example.com, b@example.com", "domain", "mg.example.com", "region", "eu")
	}
	return list
}

var messages = map[string]Message{
	"plain": {Type: AccountRefused, At: noon.UnixMilli(), Level: Bad, Title: `OpenAI refuses the key of "work"`,
		Text: "Since 12:00 UTC, status 401.\nSet a new key, or test the account.", Link: "https://weir.example.com/dashboard#/m/demo/providers", Data: json.RawMessage(`{"connectionId":"c1"}`)},
	"hostile": {Type: AccountRefused, At: noon.UnixMilli(), Level: Good, Title: "a\r\nBcc: x@example.com \x00\x1b[31m \u202e<!channel> *b* @everyone <@1> 👩‍👩‍👧",
		Text: "<users/all> & \"q\" 'q' \\ [x](https://evil.example.com) <b>b</b> ||s|| `c`\n\n# h\n- l\n\u2028\xff{\"a\":1}"},
}

func dump(r *upstream.Request) string {
	var b bytes.Buffer
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	for _, f := range r.Header {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, body, "", "  ") == nil {
		body = pretty.Bytes()
	}
	fmt.Fprintf(&b, "\n%s\n", body)
	return b.String()
}

func request(t *testing.T, d *Opened, m Message) *upstream.Request {
	t.Helper()
	item := m.Item(d.ID)
	item.ID = "demo-7"
	r, err := d.RequestOf(&item)
	if err != nil {
		t.Fatalf("%s: %v", d.Name, err)
	}
	return r
}

func TestRequestsOfKinds(t *testing.T) {
	for name, m := range messages {
		var b strings.Builder
		for _, d := range opened() {
			r := request(t, d, m)
			fmt.Fprintf(&b, "=== %s\n%s\n", d.Name, dump(r))
			if r.Timeout != timeout {
				t.Errorf("%s has no time limit", d.Name)
			}
		}
		golden.Bytes(t, name+".golden.txt", []byte(b.String()))
	}
}

// A message of any length and any characters is one that its target takes.
func TestMessagesKeepTheLimitsOfTheirTargets(t *testing.T) {
	for _, unit := range []string{"x", "&", "*", "\"", "👍", "ä", "\n", "\x00", "<a", "\\"} {
		long := Message{At: noon.UnixMilli(), Title: strings.Repeat(unit, 10_000), Text: strings.Repeat(unit, 10_000)}
		for _, d := range opened() {
			raw, _ := io.ReadAll(request(t, d, long).Body)
			body := gjson.ParseBytes(raw)
			if !utf8.Valid(raw) || d.Name != "email mailgun" && !gjson.ValidBytes(raw) {
				t.Errorf("%s with %q: not valid", d.Name, unit)
			}
			chars := func(path string, most int) {
				if n := utf8.RuneCountInString(body.Get(path).Str); n > most {
					t.Errorf("%s with %q: %s has %d characters, at most %d are taken", d.Name, unit, path, n, most)
				}
			}
			switch d.Name {
			case "slack":
				chars("blocks.0.text.text", 3000)
			case "discord":
				chars("embeds.0.title", 256)
				chars("embeds.0.description", 4096)
			case "teams":
				if len(raw) > 28<<10 {
					t.Errorf("Teams with %q: %d bytes", unit, len(raw))
				}
			case "google-chat":
				if len(raw) > 32<<10 {
					t.Errorf("Google Chat with %q: %d bytes", unit, len(raw))
				}
			case "ntfy":
				if n := len(body.Get("message").Str); n > 4096 {
					t.Errorf("ntfy with %q: %d bytes", unit, n)
				}
			}
		}
	}
}

func TestMarkupOfNamesHasNoEffect(t *testing.T) {
	m := messages["hostile"]
	for _, d := range opened() {
		raw, _ := io.ReadAll(request(t, d, m).Body)
		body := gjson.ParseBytes(raw)
		switch d.Name {
		case "slack":
			if text := body.Get("blocks.0.text.text").Str + body.Get("text").Str; strings.Contains(text, "<") {
				t.Errorf("a mention is left: %s", text)
			}
		case "discord":
			if body.Get("allowed_mentions.parse").Raw != "[]" || strings.Contains(body.Get("embeds.0.description").Str, "[x](") {
				t.Errorf("Discord: %s", raw)
			}
		case "google-chat":
			if text := body.Get("cardsV2.0.card.sections.0.widgets.0.textParagraph.text").Str; strings.Contains(text, "<b>") || strings.Contains(text, "<users") {
				t.Errorf("Google Chat: %s", text)
			}
		case "email mailgun":
			form, err := url.ParseQuery(string(raw))
			if err != nil || strings.ContainsAny(form.Get("subject"), "\r\n") || len(form["to"]) != 2 {
				t.Errorf("Mailgun: %s %v", raw, err)
			}
		}
	}
}

// An answer decides by its status; what it says is not shown with a secret.
func TestVerdicts(t *testing.T) {
	find := func(name string) *Opened {
		for _, d := range opened() {
			if d.Name == name {
				return d
			}
		}
		return nil
	}
	for _, tt := range []struct {
		kind    string
		status  int
		header  string
		body    string
		verdict storage.Verdict
		after   int64
	}{
		{"slack", 200, "", "ok", storage.Delivered, 0},
		{"slack", 404, "", "no_service", storage.Refused, 0},
		{"slack", 410, "", "channel_is_archived", storage.Disable, 0},
		{"slack", 429, "30", "", storage.Again, 30_000},
		{"slack", 429, "Sat, 28 Nov 2026 12:01:00 GMT", "", storage.Again, 60_000},
		{"slack", 429, "-1", "", storage.Again, 0},
		{"slack", 429, "1e300", "", storage.Again, 86_400_000},
		{"slack", 503, "soon", "", storage.Again, 0},
		{"discord", 204, "", "", storage.Delivered, 0},
		{"discord", 429, "1", `{"retry_after":2.5}`, storage.Again, 2500},
		{"discord", 429, "", `{"retry_after":1e99}`, storage.Again, 0},
		{"discord", 400, "", `{"message":"x"}`, storage.Dropped, 0},
		{"webhook", 302, "", "", storage.Refused, 0},
		{"webhook", 413, "", "", storage.Dropped, 0},
		{"webhook", 401, "", "", storage.Refused, 0},
		{"webhook", 999, "", "", storage.Again, 0},
	} {
		d := find(tt.kind)
		r := d.Judge(&upstream.Response{Status: tt.status, Header: httpmsg.Header{{Name: "retry-after", Value: tt.header}}, Body: stream.FromString(tt.body)}, nil)
		if r.Verdict != tt.verdict || r.After != tt.after {
			t.Errorf("%s %d %q %q: got %+v", tt.kind, tt.status, tt.header, tt.body, r)
		}
	}
}

func TestFieldsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		kind, field, value string
		ok                 bool
	}{
		{"email", "from", "Weir <weir@example.com>", true}, {"email", "from", "weir@example.com\nBcc: x@y.z", false},
		{"email", "from", "weir", false}, {"email", "to", "a@example.com,b@example.com", true}, {"email", "to", "a@example.com;b@example.com", false},
		{"email", "to", strings.Repeat("a@example.com,", 11) + "a@example.com", false}, {"email", "domain", "mg.example.com", true},
		{"email", "domain", "mg.example.com/v3/other", false}, {"email", "token", "a b", false},
		{"ntfy", "url", "https://ntfy.sh/", false}, {"ntfy", "url", "https://ntfy.sh/topic", true},
		{"slack", "quietHours", "22:00-07:00", true}, {"slack", "quietHours", "22:00", false}, {"slack", "quietHours", "25:00-07:00", false},
		{"slack", "quietHours", "22:00-22:00", false}, {"slack", "coolingMinutes", "0", false}, {"slack", "coolingMinutes", "15", true},
	} {
		for _, f := range KindOf(tt.kind).Fields {
			if f.Name == tt.field && (f.Check(tt.value) == "") != tt.ok {
				t.Errorf("%s %s %q: %q", tt.kind, tt.field, tt.value, f.Check(tt.value))
			}
		}
	}
}

// The text of an answer is bounded before the search for secrets, which takes longer with each
// of them, and a secret at the bound is not shown in part.
func TestLongTextOfAnswerIsBounded(t *testing.T) {
	d := &Opened{Values: map[string]secret.Secret{"token": secret.New("canary-0123456789")}}
	for name, tt := range map[string]struct{ text, want string }{
		"short":             {"bad token canary-0123456789", "bad token ***"},
		"blanks":            {"first" + strings.Repeat(" ", 5000) + "last", "first"},
		"a secret is cut":   {"bad" + strings.Repeat(" ", maxWhy-10) + "canary-0123456789 ", "bad"},
		"one word":          {strings.Repeat("x", 5000), ""},
		"one word of tries": {strings.Repeat("canary-0123456789", 500), ""},
	} {
		if got := d.hide(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
