package oauth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/upstream"
)

const begun = `{"device_code":"dc-secret","user_code":"ABCD-EFGH","verification_uri":"https://id.acme.test/go","expires_in":900,"interval":5}`

var ctx = context.Background()

// deviceWorld answers the device endpoint with begun and the token endpoint
// with the given answers in turn, the last one for ever.
func deviceWorld(t *testing.T, answers ...string) *world {
	i := 0
	return newWorld(t, func(url string, _ map[string]string) (int, string) {
		if strings.HasSuffix(url, "/device") || strings.HasSuffix(url, "/d") {
			return 200, begun
		}
		a := answers[min(i, len(answers)-1)]
		i++
		if strings.Contains(a, "access_token") {
			return 200, a
		}
		return 400, a
	})
}

func (w *world) tokenCalls() (n int) {
	for _, c := range w.idp.calls {
		if c["grant_type"] != "" {
			n++
		}
	}
	return n
}

func code(err error) string {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestDeviceFlow(t *testing.T) {
	w := deviceWorld(t, `{"error":"authorization_pending"}`, `{"error":"slow_down"}`, `{"error":"authorization_pending"}`, granted)
	d, err := w.Device(ctx, "acme", "note")
	if err != nil {
		t.Fatal(err)
	}
	if d.UserCode != "ABCD-EFGH" || d.VerificationURI != "https://id.acme.test/go" || d.Interval != 5*time.Second || !d.ExpiresAt.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("%+v", d)
	}
	if strings.Contains(fmt.Sprintf("%+v", d)+w.atRest(), "dc-secret") {
		t.Error("the device code shows")
	}
	if c := w.idp.calls[0]; c["client_id"] != "client-1" || c["scope"] != "a b:c" || c["url"] != "https://id.acme.test/device" {
		t.Errorf("%v", c)
	}
	// A second dashboard joins the flow.
	if other, err := w.Device(ctx, "acme", "note"); err != nil || other.UserCode != d.UserCode || len(w.idp.calls) != 1 {
		t.Errorf("%v %v, %d calls", other, err, len(w.idp.calls))
	}
	var asked []time.Duration // when the token endpoint was asked
	began := w.now
	for range 200 {
		before := w.tokenCalls()
		p, err := w.Poll(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		if w.tokenCalls() > before {
			asked = append(asked, w.now.Sub(began))
		}
		if p.Grant != nil {
			break
		}
		w.now = w.now.Add(time.Second) // far more often than allowed
	}
	// Every 5 s, after slow_down every 10 s.
	if fmt.Sprint(asked) != "[5s 10s 20s 30s]" {
		t.Errorf("asked at %v", asked)
	}
	c := w.idp.calls[1]
	if c["grant_type"] != "urn:ietf:params:oauth:grant-type:device_code" || c["device_code"] != "dc-secret" || c["client_id"] != "client-1" {
		t.Errorf("%v", c)
	}
	if len(w.rows) != 0 {
		t.Errorf("left: %v", w.rows)
	}
	if _, err := w.Poll(ctx, "acme"); code(err) != "no_flow" {
		t.Errorf("after the end: %v", err)
	}
}

func TestDeviceFlowEnds(t *testing.T) {
	for answer, want := range map[string]string{
		`{"error":"expired_token"}`: "expired_token",
		`{"error":"access_denied"}`: "access_denied",
	} {
		w := deviceWorld(t, answer)
		w.Device(ctx, "acme", "note")
		w.now = w.now.Add(5 * time.Second)
		if _, err := w.Poll(ctx, "acme"); code(err) != want {
			t.Errorf("%s: %v", answer, err)
		}
		w.now = w.now.Add(time.Minute)
		if _, err := w.Poll(ctx, "acme"); code(err) != "no_flow" || w.tokenCalls() != 1 {
			t.Errorf("%s: goes on: %v", answer, err)
		}
	}
}

func TestDeviceFlowExpiresHere(t *testing.T) {
	w := deviceWorld(t, granted)
	w.Device(ctx, "acme", "note")
	w.now = w.now.Add(10 * time.Minute)
	if _, err := w.Poll(ctx, "acme"); code(err) != "expired_token" || w.tokenCalls() != 0 || len(w.rows) != 0 {
		t.Errorf("%v", err)
	}
	if _, err := w.Device(ctx, "acme", "note"); err != nil || len(w.idp.calls) != 2 {
		t.Errorf("a new flow: %v", err)
	}
}

func TestPollBacksOffAfterATimeout(t *testing.T) {
	w := deviceWorld(t, granted)
	w.Device(ctx, "acme", "note")
	w.now = w.now.Add(5 * time.Second)
	w.idp.err = fmt.Errorf("x: %w", upstream.ErrTimeout)
	_, err := w.Poll(ctx, "acme")
	var f *Failure
	if !errors.As(err, &f) || f.Kind != Transient {
		t.Fatal(err)
	}
	w.idp.err = nil
	if p, err := w.Poll(ctx, "acme"); err != nil || p.Wait != 10*time.Second {
		t.Fatal(p, err)
	}
	w.now = w.now.Add(10 * time.Second)
	if p, err := w.Poll(ctx, "acme"); err != nil || p.Grant == nil {
		t.Error(p, err)
	}
}

// While a call is under way the object serves other polls: none of them calls.
func TestParallelPollsAreOneCall(t *testing.T) {
	w := deviceWorld(t, granted)
	w.Device(ctx, "acme", "note")
	w.now = w.now.Add(5 * time.Second)
	answer := w.idp.answer
	w.idp.answer = func(url string, form map[string]string) (int, string) {
		w.now = w.now.Add(9 * time.Second)
		if p, err := w.Poll(ctx, "acme"); err != nil || p.Grant != nil || p.Wait <= 0 {
			t.Errorf("inner poll: %v %v", p, err)
		}
		return answer(url, form)
	}
	if p, err := w.Poll(ctx, "acme"); err != nil || p.Grant == nil || w.tokenCalls() != 1 {
		t.Errorf("%v %v, %d calls", p, err, w.tokenCalls())
	}
}

// Two begin at once: the later one to return joins the flow that is stored.
func TestParallelStartsAreOneFlow(t *testing.T) {
	w := deviceWorld(t, granted)
	n := 0
	w.idp.answer = func(string, map[string]string) (int, string) {
		n++
		if n == 1 {
			if d, err := w.Device(ctx, "acme", "note"); err != nil || d.UserCode != "CODE-2" {
				t.Errorf("inner: %v %v", d, err)
			}
			return 200, strings.Replace(begun, "ABCD-EFGH", "CODE-1", 1)
		}
		return 200, strings.Replace(begun, "ABCD-EFGH", "CODE-2", 1)
	}
	if d, err := w.Device(ctx, "acme", "note"); err != nil || d.UserCode != "CODE-2" || len(w.rows) != 1 {
		t.Errorf("%v %v", d, err)
	}
}

func TestDeviceFlowWithPKCEAndASecret(t *testing.T) {
	w := deviceWorld(t, granted)
	if _, err := w.Device(ctx, "conf", "note"); err != nil {
		t.Fatal(err)
	}
	if w.idp.header.Get("authorization") == "" {
		t.Error("the device endpoint was called without the client")
	}
	w.now = w.now.Add(5 * time.Second)
	if _, err := w.Poll(ctx, "conf"); err != nil {
		t.Fatal(err)
	}
	if a, b := w.idp.calls[0], w.idp.calls[1]; a["code_challenge"] != Challenge(b["code_verifier"]) || len(b["code_verifier"]) != 43 || a["code_challenge_method"] != "S256" {
		t.Errorf("%v %v", a, b)
	}
	w = deviceWorld(t, granted)
	w.Device(ctx, "onlydevice", "note")
	if c := w.idp.calls[0]; c["client_secret"] != "posted-secret" || w.idp.header.Get("authorization") != "" {
		t.Errorf("%v", c)
	}
}

func TestDeviceAnswers(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   func(*Device, error) bool
	}{
		{"google_names", 200, `{"device_code":"d","user_code":"u","verification_url":"https://g.test/d","expires_in":60}`,
			func(d *Device, err error) bool {
				return err == nil && d.VerificationURI == "https://g.test/d" && d.Interval == 5*time.Second && d.ExpiresAt.UnixMilli() == 1_700_000_060_000
			}},
		{"odd_numbers", 200, `{"device_code":"d","user_code":"u","verification_uri":"https://g.test/d","verification_uri_complete":"javascript:x","expires_in":1e300,"interval":1e300}`,
			func(d *Device, err error) bool {
				return err == nil && d.Interval == 5*time.Minute && d.ExpiresAt.UnixMilli() == 1_700_000_600_000 && d.VerificationURIComplete == ""
			}},
		{"negative_numbers", 200, `{"device_code":"d","user_code":"u","verification_uri":"https://g.test/d","expires_in":-1,"interval":-1}`,
			func(d *Device, err error) bool {
				return err == nil && d.Interval == 5*time.Second && d.ExpiresAt.UnixMilli() == 1_700_000_030_000
			}},
		{"script_link", 200, `{"device_code":"d","user_code":"u","verification_uri":"javascript:x","expires_in":60}`, failed(Transient)},
		{"no_user_code", 200, `{"device_code":"d","verification_uri":"https://g.test/d"}`, failed(Transient)},
		{"html", 200, `<html>`, failed(Transient)},
		{"refused", 401, `{"error":"invalid_client"}`, failed(Refused)},
		{"error_with_200", 200, `{"error":"unauthorized_client"}`, failed(Refused)},
		{"busy", 503, `{"error":"invalid_grant"}`, failed(Transient)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(string, map[string]string) (int, string) { return tt.status, tt.body })
			if d, err := w.Device(ctx, "acme", "note"); !tt.want(d, err) {
				t.Errorf("%+v, %v", d, err)
			} else if err != nil && len(w.rows) != 0 {
				t.Error("a failed start left a row")
			}
		})
	}
}

func failed(k Kind) func(*Device, error) bool {
	return func(_ *Device, err error) bool {
		var f *Failure
		return errors.As(err, &f) && f.Kind == k
	}
}

func TestCancelLetsANewFlowBegin(t *testing.T) {
	w := deviceWorld(t, granted)
	w.Device(ctx, "acme", "note")
	w.Cancel("acme")
	if _, err := w.Device(ctx, "acme", "note"); err != nil || len(w.idp.calls) != 2 {
		t.Error(err)
	}
	if _, err := w.Device(ctx, "nodevice", "note"); status(err) != 400 {
		t.Error(err)
	}
}
