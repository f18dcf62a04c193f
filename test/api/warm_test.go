package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
)

// called makes a call and returns its status, and the credential and address of each
// upstream call.
func (w *world) called(key string) string {
	w.t.Helper()
	w.Seen = nil
	out := []string{fmt.Sprint(w.embed(key).status)}
	for _, s := range w.Seen {
		out = append(out, strings.TrimPrefix(s.Header.Get("authorization"), "Bearer upstream-key-")+" "+s.URL)
	}
	return strings.Join(out, ", ")
}

// failing makes the calls of an account fail.
func (w *world) failing(account string, a fake.Answer) {
	w.Answer = func(s *fake.Seen) fake.Answer {
		if strings.HasSuffix(s.Header.Get("authorization"), "-"+account) {
			return a
		}
		return fake.JSON(embedding)
	}
}

// A call repeats what an earlier one has found out: the resolved model, the addresses,
// the opened credentials, the check digits of the key. Whatever changes the outcome of
// a call is seen by the next one all the same.
func TestRepeatedCallSeesEveryChange(t *testing.T) {
	const (
		url    = "http://up.example/v1/embeddings"
		first  = "200, 0 " + url
		second = "200, 1 " + url
	)
	for _, tt := range []struct {
		name   string
		change func(w *world, id, keyID string, accounts []string)
		want   []string // of the calls that follow
	}{
		{"nothing", func(*world, string, string, []string) {}, []string{first, first}},
		{"the key is revoked", func(w *world, id, key string, _ []string) {
			w.get(204, w.do("DELETE", "/"+id+"/api/keys/"+key, adminToken, ""), nil)
		}, []string{"401", "401"}},
		{"the key is paused", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key, adminToken, `{"paused":true}`), nil)
		}, []string{"403", "403"}},
		{"the key is paused and resumed", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key, adminToken, `{"paused":true}`), nil)
			w.called(w.key)
			w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key, adminToken, `{"paused":false}`), nil)
		}, []string{first}},
		{"the key gets other models", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key, adminToken, `{"models":["up/other"],"allowUnknown":true}`), nil)
		}, []string{"403"}},
		{"the key is rotated with an overlap", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("POST", "/"+id+"/api/keys/"+key+"/rotate", adminToken, `{}`), nil)
		}, []string{first, first}},
		{"the key is rotated and its overlap is over", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("POST", "/"+id+"/api/keys/"+key+"/rotate", adminToken, `{"overlapSeconds":1}`), nil)
			w.called(w.key)
			w.Add(time.Second)
		}, []string{"401", "401"}},
		{"the key is rotated at once", func(w *world, id, key string, _ []string) {
			w.get(200, w.do("POST", "/"+id+"/api/keys/"+key+"/rotate", adminToken, `{"overlapSeconds":0}`), nil)
		}, []string{"401"}},
		{"the key expires", func(w *world, id, key string, _ []string) { w.Add(2 * time.Hour) }, []string{"401"}},
		{"the machine is deleted", func(w *world, id, _ string, _ []string) {
			w.get(204, w.do("DELETE", "/api/machines/"+id, adminToken, ""), nil)
		}, []string{"401"}},
		{"the model is disabled", func(w *world, id, _ string, _ []string) {
			w.get(200, w.do("POST", "/"+id+"/api/models/disabled", adminToken, `{"providerAlias":"up","ids":["m"]}`), nil)
		}, []string{"404"}},
		{"the first account is deleted", func(w *world, id, _ string, accounts []string) {
			w.get(204, w.do("DELETE", "/"+id+"/api/providers/"+accounts[0], adminToken, ""), nil)
		}, []string{second}},
		{"the first account is switched off", func(w *world, id, _ string, accounts []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/providers/"+accounts[0], adminToken, `{"isActive":false}`), nil)
		}, []string{second}},
		{"the first account gets another key", func(w *world, id, _ string, accounts []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/providers/"+accounts[0], adminToken, `{"apiKey":"upstream-key-9"}`), nil)
		}, []string{"200, 9 " + url, "200, 9 " + url}},
		{"the first account moves", func(w *world, id, _ string, accounts []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/providers/"+accounts[0], adminToken, `{"apiKey":"upstream-key-0","providerSpecificData":{"baseUrl":"http://new.example/v1","prefix":"up"}}`), nil)
		}, []string{"200, 0 http://new.example/v1/embeddings"}},
		{"the priorities change", func(w *world, id, _ string, accounts []string) {
			w.get(200, w.do("PUT", "/"+id+"/api/providers/"+accounts[0], adminToken, `{"priority":5}`), nil)
		}, []string{second}},
		{"the accounts take turns", func(w *world, id, _ string, _ []string) {
			w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"strategy":"round-robin"}`), nil)
		}, []string{first, second, first}},
		{"the first account is limited", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 429, Body: `{}`})
		}, []string{"200, 0 " + url + ", 1 " + url, second}},
		{"the cooldown of the first account ends", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 429, Body: `{}`})
			w.called(w.key)
			w.failing("", fake.Answer{})
			w.Add(3 * time.Second)
		}, []string{first}},
		{"the key of the first account is refused", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 401, Body: `{}`})
		}, []string{"200, 0 " + url + ", 1 " + url, second}},
		{"the first account has no credit", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 402, Body: `{}`})
		}, []string{"200, 0 " + url + ", 1 " + url, second}},
		{"the first account fails again and again", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 500, Body: `{}`})
			for range 5 {
				w.called(w.key)
			}
		}, []string{second}},
		{"the provider refuses this place", func(w *world, _, _ string, _ []string) {
			w.failing("0", fake.Answer{Status: 403, Body: `{"error":{"message":"no","code":"unsupported_country_region_territory"}}`})
			w.called(w.key)
		}, []string{"403"}},
		{"the object and the replica are away for a minute", func(w *world, _, _ string, _ []string) {
			w.Objects.Down = true
			w.KV.Down(true)
			w.Add(61 * time.Second)
		}, []string{"503"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			id, _ := w.tenant(2)
			var key struct{ ID, APIKey string }
			w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, fmt.Sprintf(`{"expiresAt":%d}`, w.Now().Add(time.Hour).UnixMilli())), &key)
			w.key = key.APIKey
			var list struct{ Data []struct{ ID string } }
			w.get(200, w.do("GET", "/"+id+"/api/providers", adminToken, ""), &list)
			for range 3 {
				if got := w.called(key.APIKey); got != first {
					t.Fatalf("before: got %s, want %s", got, first)
				}
			}
			tt.change(w, id, key.ID, []string{list.Data[0].ID, list.Data[1].ID})
			for i, want := range tt.want {
				if got := w.called(key.APIKey); got != want {
					t.Errorf("call %d after: got %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// Two machines that use the same names share nothing.
func TestMachinesShareNothing(t *testing.T) {
	w := newWorld(t)
	_, one := w.tenant(1)
	id, two := w.tenant(1)
	var list struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", "/"+id+"/api/providers", adminToken, ""), &list)
	w.get(200, w.do("PUT", "/"+id+"/api/providers/"+list.Data[0].ID, adminToken, `{"apiKey":"upstream-key-2","providerSpecificData":{"baseUrl":"http://two.example/v1","prefix":"up"}}`), nil)
	for range 3 {
		if got, want := w.called(one), "200, 0 http://up.example/v1/embeddings"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := w.called(two), "200, 2 http://two.example/v1/embeddings"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
