package proxy

import (
	"errors"
	"io"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// families are the kinds of upstream that each client is tested against.
var families = []struct {
	prefix   string
	provider string
	base     string
}{
	{"up", "openai-compatible-0123abcd", "https://up.example/v1"},
	{"an", "anthropic-compatible-0123abcd", "https://an.example/v1"},
	{"ge", "gemini", ""},
}

// pieces cuts a recorded stream at its events.
func pieces(text string) []string {
	var out []string
	for _, p := range strings.SplitAfter(text, "\n\n") {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// failing is an event of an upstream that reports an error.
func failing(d llm.Dialect, kind string) string {
	switch d {
	case llm.Messages:
		return string(sse.Named(nil, "error", []byte(`{"type":"error","error":{"type":"`+kind+`","message":"told"}}`)))
	case llm.Responses:
		return string(sse.Named(nil, "error", []byte(`{"type":"error","code":"`+kind+`","message":"told"}`)))
	}
	return string(sse.Named(nil, "", []byte(`{"error":{"message":"told","type":"`+kind+`","code":null}}`)))
}

// TestStreamHasOneOutcome breaks streams after their first event: the client's
// stream ends once, with the terminator only if the upstream's did, and no
// second attempt follows. See docs/reference/reliability.md, N1, N10, F10–F25.
func TestStreamHasOneOutcome(t *testing.T) {
	tests := []struct {
		name   string
		damage func(d llm.Dialect, p []string) ([]string, error)
		native string // the outcome where bytes pass
		other  string // and where they are translated
		worked bool   // the account counts as working
		effect string // on the account: "", limited (it cools down) or unsteady
	}{
		{"whole", func(_ llm.Dialect, p []string) ([]string, error) { return p, nil }, "well", "well", true, ""},
		{"one_byte_at_a_time_F12", func(_ llm.Dialect, p []string) ([]string, error) {
			return strings.Split(strings.Join(p, ""), ""), nil
		}, "well", "well", true, ""},
		{"cr_lf_F22", func(_ llm.Dialect, p []string) ([]string, error) {
			return []string{strings.ReplaceAll(strings.Join(p, ""), "\n", "\r\n")}, nil
		}, "well", "well", true, ""},
		{"cr_F22", func(_ llm.Dialect, p []string) ([]string, error) {
			return []string{strings.ReplaceAll(strings.Join(p, ""), "\n", "\r")}, nil
		}, "well", "well", true, ""},
		{"comments_F22", func(_ llm.Dialect, p []string) ([]string, error) {
			return strings.SplitAfter(": a\n\n"+strings.Join(p, ": keep-alive\n\n"), "\n\n"), nil
		}, "well", "well", true, ""},
		{"long_line_F22", func(_ llm.Dialect, p []string) ([]string, error) {
			return append([]string{p[0], ": " + strings.Repeat("x", 3<<20) + "\n\n"}, p[1:]...), nil
		}, "well", "well", true, ""},
		{"more_after_the_end_F25", func(_ llm.Dialect, p []string) ([]string, error) {
			return append(p, ": bye\n\n"), nil
		}, "well", "well", true, ""},
		{"cut_F18", func(_ llm.Dialect, p []string) ([]string, error) { return p[:len(p)/2], nil }, "with an error", "with an error", false, "unsteady"},
		// A stream that sent its finish or stop reason and ended cleanly is
		// complete. A Responses stream says it in its last event.
		{"terminator_missing", func(d llm.Dialect, p []string) ([]string, error) {
			if d == llm.Gemini {
				return p, nil // it has none
			}
			return p[:len(p)-1], nil
		}, "well", "well", true, ""},
		{"terminator_missing_after_reset", func(d llm.Dialect, p []string) ([]string, error) {
			if d == llm.Responses {
				p = p[:len(p)-1]
			}
			return p[:len(p)-1], io.ErrUnexpectedEOF
		}, "with an error", "with an error", false, "unsteady"},
		{"cut_after_one_event_F18", func(_ llm.Dialect, p []string) ([]string, error) { return p[:1], nil }, "with an error", "with an error", false, "unsteady"},
		{"cut_within_an_event_F17", func(_ llm.Dialect, p []string) ([]string, error) {
			return append(p[:2:2], p[2][:len(p[2])/2]), nil
		}, "with an error", "with an error", false, "unsteady"},
		{"cut_within_a_character_F22", func(_ llm.Dialect, p []string) ([]string, error) {
			all := strings.Join(p, "")
			at := strings.Index(all, "☃")
			return []string{all[:at+1]}, nil
		}, "with an error", "with an error", false, "unsteady"},
		{"reset_F13", func(_ llm.Dialect, p []string) ([]string, error) { return p[:3], errors.New("connection lost") }, "with an error", "with an error", false, "unsteady"},
		{"reset_within_an_event_F17", func(_ llm.Dialect, p []string) ([]string, error) {
			return append(p[:2:2], p[2][:9]), io.ErrUnexpectedEOF
		}, "with an error", "with an error", false, "unsteady"},
		{"silence_F10", func(_ llm.Dialect, p []string) ([]string, error) { return p[:3], stream.ErrIdle }, "with an error", "with an error", false, ""},
		{"total_time_F11", func(_ llm.Dialect, p []string) ([]string, error) { return p[:3], stream.ErrTimeout }, "with an error", "with an error", false, ""},
		{"overloaded_F24", func(d llm.Dialect, p []string) ([]string, error) {
			return append(p[:3:3], failing(d, "overloaded_error")), nil
		}, "with an error", "with an error", false, ""},
		{"rate_limit_F24", func(d llm.Dialect, p []string) ([]string, error) {
			return append(p[:3:3], failing(d, "rate_limit_error")), nil
		}, "with an error", "with an error", false, "limited"},
		{"error_then_reset_F24", func(d llm.Dialect, p []string) ([]string, error) {
			return append(p[:3:3], failing(d, "rate_limit_error")), errors.New("connection lost")
		}, "with an error", "with an error", false, "limited"},
	}
	for _, f := range families {
		for _, d := range clients {
			for _, tt := range tests {
				t.Run(f.prefix+"/"+d.String()+"/"+tt.name, func(t *testing.T) {
					w := newWorld(t, provided{prefix: f.prefix, provider: f.provider, base: f.base}, provided{prefix: f.prefix + "#2", provider: f.provider, base: f.base, priority: 1})
					var native bool
					w.Answer = func(r *fake.Seen) fake.Answer {
						up := upstreamDialect(t, r)
						native = up == d
						a := recorded(t, up, true)
						p, end := tt.damage(up, pieces(strings.Join(a.Pieces, "")))
						a.Pieces, a.End = p, end
						return a
					}
					for i := range 5 { // five in a row make an outlier
						reply, err := w.ask(d, request(d, f.prefix+"/m", true))
						if err != nil {
							t.Fatal(err)
						}
						got := w.text(reply)
						want := tt.other
						if native {
							want = tt.native
						}
						if outcome := ends(t, d, got); outcome != want {
							t.Fatalf("ended %s, want %s\n%s", outcome, want, got)
						}
						if tt.name == "rate_limit_F24" || tt.name == "error_then_reset_F24" {
							break // one is enough
						}
						if i < 4 && w.machine.Outlier("c-"+f.prefix, "m", w.Now().UnixMilli()) {
							t.Error("it takes five failures")
						}
					}
					if w.call.Trace.Attempts() != 1 {
						t.Errorf("%d attempts", w.call.Trace.Attempts())
					}
					for _, r := range w.rows() {
						if (r.Errors == 0) != tt.worked || r.Errors != 0 && r.Errors != r.Requests {
							t.Errorf("usage %+v", r)
						}
					}
					state := max(w.machine.State("c-"+f.prefix, "").Until, w.machine.State("c-"+f.prefix, "m").Until)
					if (state != 0) != (tt.effect == "limited") {
						t.Errorf("cools down until %d", state)
					}
					if got := w.machine.Outlier("c-"+f.prefix, "m", w.Now().UnixMilli()); got != (tt.effect == "unsteady") {
						t.Errorf("an outlier: %v", got)
					}
					if (w.call.Trace.Err == nil) != tt.worked {
						t.Errorf("the log has %v", w.call.Trace.Err)
					}
					if w.Open != 0 {
						t.Errorf("%d bodies left open", w.Open)
					}
				})
			}
		}
	}
}

// TestFailureBeforeFirstEventTriesNextAccount breaks answers before or at their
// first event: another account answers, or the client gets an error and no
// stream. See docs/reference/reliability.md, F1–F9, F16–F21, F26, F31, F32.
func TestFailureBeforeFirstEventTriesNextAccount(t *testing.T) {
	html := fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "text/html"}}, Pieces: []string{"<!doctype html><html><body>sign in</body></html>"}}
	tests := []struct {
		name   string
		answer func(d llm.Dialect) fake.Answer
		next   bool // another account is tried
		status int  // of the client's error without one
	}{
		{"refused_F2", func(llm.Dialect) fake.Answer { return fake.Answer{Err: upstream.ErrNetwork} }, true, 502},
		{"no_head_F8", func(llm.Dialect) fake.Answer { return fake.Answer{Err: upstream.ErrTimeout} }, true, 504},
		// After the head no second account is called because of slowness.
		{"no_first_event_F8", func(llm.Dialect) fake.Answer {
			a := events("")
			a.Pieces, a.End = []string{}, upstream.ErrTimeout
			return a
		}, false, 504},
		{"comments_and_then_silence", func(llm.Dialect) fake.Answer { a := events(": wait\n\n"); a.End = upstream.ErrTimeout; return a }, false, 504},
		{"reset_before_the_first_event", func(llm.Dialect) fake.Answer { a := events("data: {"); a.End = errors.New("lost"); return a }, true, 502},
		{"empty_F26", func(llm.Dialect) fake.Answer { a := events(""); a.Pieces = []string{}; return a }, true, 502},
		{"comments_only", func(llm.Dialect) fake.Answer { return events(": wait\n\n") }, true, 502},
		{"done_only", func(llm.Dialect) fake.Answer { return events("data: [DONE]\n\n") }, true, 502},
		{"no_content_F19", func(llm.Dialect) fake.Answer { return fake.Answer{Status: 204} }, true, 502},
		{"redirect_F20", func(llm.Dialect) fake.Answer { return fake.Answer{Status: 302} }, true, 502},
		{"no_status_F21", func(llm.Dialect) fake.Answer { return fake.Answer{Status: 999} }, true, 502},
		{"early_hints_F16", func(llm.Dialect) fake.Answer { return fake.Answer{Status: 103} }, true, 502},
		{"html_F26", func(llm.Dialect) fake.Answer { return html }, true, 502},
		{"plain_text_F26", func(llm.Dialect) fake.Answer { return events("all is well\n") }, true, 502},
		{"null_F26", func(llm.Dialect) fake.Answer { return jsonOf(200, "null") }, true, 502},
		{"array_F26", func(llm.Dialect) fake.Answer { return jsonOf(200, "[]") }, true, 502},
		{"first_event_is_not_json", func(llm.Dialect) fake.Answer { return events("data: {oops\n\n") }, true, 502},
		{"overloaded_at_once_F24", func(d llm.Dialect) fake.Answer { return events(failing(d, "overloaded_error")) }, true, 529},
		{"limited_at_once_F24", func(d llm.Dialect) fake.Answer { return events(failing(d, "rate_limit_error")) }, true, 429},
		{"invalid_at_once", func(d llm.Dialect) fake.Answer { return events(failing(d, "invalid_request_error")) }, false, 400},
		{"json_error_with_200", func(llm.Dialect) fake.Answer {
			return jsonOf(200, `{"error":{"type":"rate_limit_error","message":"told"}}`)
		}, true, 429},
		{"401", func(llm.Dialect) fake.Answer { return jsonOf(401, `{"error":{"message":"told"}}`) }, true, 401},
		{"429_F27", func(llm.Dialect) fake.Answer { return jsonOf(429, `{"error":{"message":"told"}}`) }, true, 429},
		{"500_F32", func(llm.Dialect) fake.Answer { return fake.Answer{Status: 500, Pieces: html.Pieces} }, true, 500},
		{"503_F31", func(llm.Dialect) fake.Answer { return jsonOf(503, `{}`) }, true, 503},
		{"529_F31", func(llm.Dialect) fake.Answer { return jsonOf(529, `{}`) }, true, 529},
		{"400_F36", func(llm.Dialect) fake.Answer { return jsonOf(400, `{"error":{"message":"told"}}`) }, false, 400},
		{"413_F36", func(llm.Dialect) fake.Answer { return jsonOf(413, `{"error":{"message":"told"}}`) }, false, 413},
		{"422_F36", func(llm.Dialect) fake.Answer { return jsonOf(422, `{"detail":"told"}`) }, false, 422},
	}
	for _, f := range families {
		for _, d := range clients {
			for _, tt := range tests {
				if tt.status == 413 && d == llm.Responses {
					continue // TestTooLargeRequestsLetCodexCompact
				}
				t.Run(f.prefix+"/"+d.String()+"/"+tt.name, func(t *testing.T) {
					both := []provided{{prefix: f.prefix, provider: f.provider, base: f.base}, {prefix: f.prefix + "#2", provider: f.provider, base: f.base, priority: 1}}
					for _, accounts := range []int{1, 2} {
						w := newWorld(t, both[:accounts]...)
						w.Answer = func(r *fake.Seen) fake.Answer {
							if len(w.Seen) == 1 {
								return tt.answer(upstreamDialect(t, r))
							}
							return recorded(t, upstreamDialect(t, r), true)
						}
						reply, err := w.ask(d, request(d, f.prefix+"/m", true))
						if accounts == 2 && tt.next {
							if err != nil {
								t.Fatal(err)
							}
							if got := ends(t, d, w.text(reply)); got != "well" || len(w.Seen) != 2 {
								t.Errorf("ended %s after %d calls", got, len(w.Seen))
							}
							if len(w.rows()) != 2 || w.rows()[0].Errors != 1 || w.rows()[0].ConnectionID != "c-"+f.prefix || w.rows()[1].Errors != 0 || w.rows()[1].ConnectionID != "c-"+f.prefix+"#2" {
								t.Errorf("usage %+v", w.rows())
							}
						} else if strings.HasPrefix(tt.name, "refused_") || strings.HasPrefix(tt.name, "503_") {
							// One account: it is asked once more.
							if err != nil {
								t.Fatal(err)
							}
							if got := ends(t, d, w.text(reply)); got != "well" || len(w.Seen) != 2 || w.rows()[0].Errors != 1 {
								t.Errorf("ended %s after %d calls, usage %+v", got, len(w.Seen), w.rows())
							}
						} else {
							if err == nil || status(err) != tt.status || len(w.Seen) != 1 {
								t.Errorf("%v after %d calls, want %d", err, len(w.Seen), tt.status)
							}
							if len(w.rows()) != 1 || w.rows()[0].Errors != 1 {
								t.Errorf("usage %+v", w.rows())
							}
							if err != nil && strings.Contains(err.Error(), "sign in") {
								t.Errorf("HTML is shown: %v", err)
							}
						}
						if w.Open != 0 {
							t.Errorf("%d bodies left open", w.Open)
						}
					}
				})
			}
		}
	}
}

// TestClosedClientEndsUpstreamStream: a closed client ends the upstream's
// stream, and its usage is recorded. See docs/reference/reliability.md, F45.
func TestClosedClientEndsUpstreamStream(t *testing.T) {
	for _, f := range families {
		for _, d := range clients {
			w := newWorld(t, provided{prefix: f.prefix, provider: f.provider, base: f.base})
			w.Answer = func(r *fake.Seen) fake.Answer {
				a := recorded(t, upstreamDialect(t, r), true)
				a.Pieces = pieces(strings.Join(a.Pieces, ""))
				return a
			}
			reply, err := w.ask(d, request(d, f.prefix+"/m", true))
			if err != nil {
				t.Fatal(err)
			}
			reply.Body.Read(make([]byte, 10))
			reply.Body.Close()
			if w.Open != 0 || len(w.rows()) != 1 || w.rows()[0].Requests != 1 || w.rows()[0].Errors != 0 {
				t.Errorf("%s from %s: %d open, usage %+v", f.prefix, d, w.Open, w.rows())
			}
			if w.machine.State("c-"+f.prefix, "").Until != 0 {
				t.Error("the account is blamed")
			}
		}
	}
}

// TestJSONIsWholeOrAnError breaks JSON answers. See
// docs/reference/reliability.md, F13, F17–F19, F26.
func TestJSONIsWholeOrAnError(t *testing.T) {
	for _, f := range families {
		for _, d := range clients {
			for name, broken := range map[string]func(text string) fake.Answer{
				"cut":         func(s string) fake.Answer { return jsonOf(200, s[:len(s)-2]) },
				"half":        func(s string) fake.Answer { return jsonOf(200, s[:len(s)/2]) },
				"reset":       func(s string) fake.Answer { a := jsonOf(200, s); a.End = io.ErrUnexpectedEOF; return a },
				"two":         func(s string) fake.Answer { return jsonOf(200, s+s) },
				"empty":       func(string) fake.Answer { return jsonOf(200, "") },
				"null":        func(string) fake.Answer { return jsonOf(200, "null") },
				"array":       func(string) fake.Answer { return jsonOf(200, "[]") },
				"object":      func(string) fake.Answer { return jsonOf(200, `{"ok":true}`) },
				"html":        func(string) fake.Answer { return jsonOf(200, "<html>sign in</html>") },
				"cut_stream":  func(string) fake.Answer { return events("data: {\"choices\":[]}\n\n") },
				"error":       func(string) fake.Answer { return jsonOf(200, `{"error":{"message":"told","type":"server_error"}}`) },
				"no_content":  func(string) fake.Answer { return fake.Answer{Status: 204} },
				"server_fail": func(string) fake.Answer { return jsonOf(500, `{}`) },
			} {
				t.Run(f.prefix+"/"+d.String()+"/"+name, func(t *testing.T) {
					w := newWorld(t, provided{prefix: f.prefix, provider: f.provider, base: f.base}, provided{prefix: f.prefix + "#2", provider: f.provider, base: f.base, priority: 1})
					w.Answer = func(r *fake.Seen) fake.Answer {
						whole := recorded(t, upstreamDialect(t, r), false)
						if r.Header.Get("authorization")+r.Header.Get("x-api-key")+r.Header.Get("x-goog-api-key") != "" && len(w.Seen)%2 == 1 {
							return broken(strings.Join(whole.Pieces, ""))
						}
						return whole
					}
					reply, err := w.ask(d, request(d, f.prefix+"/m", false))
					if err != nil {
						t.Fatal(err)
					}
					w.text(reply)
					if len(w.Seen) != 2 || w.call.Trace.Attempts() != 2 || len(w.rows()) != 2 || w.rows()[0].Errors != 1 {
						t.Errorf("%d calls, usage %+v", len(w.Seen), w.rows())
					}
				})
			}
		}
	}
}
