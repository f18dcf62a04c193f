package models

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

func fetchWith(t *testing.T, conn store.Connection, status int, answer string) ([]string, *script) {
	t.Helper()
	up := newScript(fake.NewClock(time.Time{}))
	up.json("", status, answer)
	ids := fetchIDs(context.Background(), up, &conn, provider.Credential{APIKey: secret.New("k")})
	return ids, up
}

func TestFetchReadsEveryShape(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"array":                      {`[{"id":"a"},{"id":"b"}]`, "a b"},
		"data":                       {`{"data":[{"id":"a"}],"models":[{"id":"x"}]}`, "a"},
		"models_when_no_data":        {`{"models":[{"id":"a"}],"results":[{"id":"x"}]}`, "a"},
		"results_last":               {`{"data":null,"models":{},"results":[{"id":"a"}]}`, "a"},
		"id_then_name_then_model":    {`[{"id":"a","name":"x"},{"name":"b","model":"x"},{"model":"c"},{"other":"x"}]`, "a b c"},
		"empty_id_falls_to_name":     {`[{"id":"","name":"a"},{"id":null,"model":"b"},{"id":0,"name":"x"}]`, "a b"},
		"only_strings_are_kept":      {`[{"id":5},{"id":{"a":1}},{"id":true},{"id":["a"]},"text",7,null,{"id":"a"}]`, "a"},
		"duplicates_go":              {`[{"id":"a"},{"name":"a"},{"id":"b"},{"id":"a"}]`, "a b"},
		"order_is_the_upstreams":     {`[{"id":"z"},{"id":"a"},{"id":"m"}]`, "z a m"},
		"unicode_and_slashes":        {`[{"id":"org/mod\u00e9l:1"}]`, "org/modél:1"},
		"empty_list":                 {`{"data":[]}`, ""},
		"null":                       {`null`, ""},
		"string":                     {`"models"`, ""},
		"object_without_a_list":      {`{"error":{"message":"no"}}`, ""},
		"html":                       {"<!doctype html><html></html>", ""},
		"nothing":                    {"", ""},
		"cut_off":                    {`{"data":[{"id":"a"},{"id":"b`, ""},
		"trailing_garbage":           {`{"data":[{"id":"a"}]} x`, ""},
		"deeper_than_can_be_read":    {strings.Repeat("[", 1_000_000), ""},
		"deep_but_closed":            {strings.Repeat("[", 500) + strings.Repeat("]", 500), ""},
		"brackets_in_strings_are_ok": {`[{"id":"a` + strings.Repeat("[", 300) + `","x":"\"` + strings.Repeat("{", 300) + `"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := fetchWith(t, compat("https://a.example/v1"), 200, tt.body)
			if name == "brackets_in_strings_are_ok" {
				if len(got) != 0 { // the id is over 256 bytes, the list is read all the same
					t.Errorf("got %v", got)
				}
				got, _ = fetchWith(t, compat("https://a.example/v1"), 200, `[{"id":"b","x":"`+strings.Repeat("[", 300)+`"}]`)
				tt.want = "b"
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestFetchAddressesAndHeaders(t *testing.T) {
	for _, tt := range []struct{ provider, base, want string }{
		{compatibleID, "https://a.example/v1", "https://a.example/v1/models"},
		{compatibleID, "  https://a.example/v1/ ", "https://a.example/v1/models"},
		{compatibleID, "https://a.example/messages", "https://a.example/messages/models"},
		{compatibleID, "", ""},
		{compatibleID, "   ", ""},
		{compatibleID, "https://a.example/?q=", ""},
		{anthropicID, "https://a.example/v1", "https://a.example/v1/models"},
		{anthropicID, "https://a.example/v1/messages", "https://a.example/v1/models"},
		{anthropicID, "https://a.example/v1/messages/", "https://a.example/v1/models"},
		{"openai", "https://a.example/v1", ""},
		{"openai-compatible-short", "https://a.example/v1", ""},
	} {
		conn := store.Connection{Provider: tt.provider, Data: store.ProviderData{BaseURL: tt.base}}
		ids, up := fetchWith(t, conn, 200, `[{"id":"a"}]`)
		if tt.want == "" {
			if len(up.Seen) != 0 || ids != nil {
				t.Errorf("%s %q: %d calls, ids %v, want none", tt.provider, tt.base, len(up.Seen), ids)
			}
			continue
		}
		if len(up.Seen) != 1 || up.Seen[0].URL != tt.want || up.Seen[0].Method != "GET" {
			t.Errorf("%s %q: sent %+v, want GET %s", tt.provider, tt.base, up.Seen, tt.want)
			continue
		}
		r := up.Seen[0]
		want := map[string]string{
			"content-type": "application/json", "authorization": "Bearer k", InternalFetch: "1", "cache-control": "no-cache",
		}
		if tt.provider == anthropicID {
			want["x-api-key"], want["anthropic-version"] = "k", "2023-06-01"
		}
		for name, value := range want {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s: %s = %q, want %q", tt.provider, name, got, value)
			}
		}
		if tt.provider == compatibleID && r.Header.Get("x-api-key") != "" {
			t.Error("the chat family must not get x-api-key")
		}
		if r.Timeout != 5*time.Second || r.Request.HeaderTimeout != 5*time.Second || r.MaxBody != 4<<20 {
			t.Errorf("limits %v %v %d", r.Timeout, r.Request.HeaderTimeout, r.MaxBody)
		}
	}
}

func TestFetchFailuresGiveNothing(t *testing.T) {
	for _, status := range []int{199, 204, 301, 302, 308, 400, 401, 403, 404, 429, 500, 503, 529, 600, 999} {
		if ids, _ := fetchWith(t, compat("https://a.example"), status, ""); ids != nil {
			t.Errorf("status %d: %v", status, ids)
		}
		if ids, _ := fetchWith(t, compat("https://a.example"), status, `[{"id":"a"}]`); (ids != nil) != (status == 204) {
			t.Errorf("status %d with a list: %v", status, ids)
		}
	}
	for _, err := range []error{upstream.ErrNetwork, upstream.ErrTimeout, upstream.ErrCanceled, stream.ErrTooLarge, errors.New("else")} {
		up := newScript(fake.NewClock(time.Time{}))
		up.on("", func(*fake.Seen) fake.Answer { return fake.Answer{Err: fmt.Errorf("wrapped: %w", err)} })
		conn := compat("https://a.example")
		if ids := fetchIDs(context.Background(), up, &conn, provider.Credential{APIKey: secret.New("k")}); ids != nil {
			t.Errorf("%v: %v", err, ids)
		}
	}
}

func TestFetchReadsAtMostFourMiB(t *testing.T) {
	long := `{"data":[{"id":"a"}],"pad":"` + strings.Repeat("x", 100<<20) + `"}`
	if ids, _ := fetchWith(t, compat("https://a.example"), 200, long); ids != nil {
		t.Errorf("100 MB gave %v", ids)
	}
	var b strings.Builder
	b.WriteString(`[`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"id":"m%d"},`, i)
	}
	b.WriteString(`{"id":"last"}]`)
	if ids, _ := fetchWith(t, compat("https://a.example"), 200, b.String()); len(ids) != maxModels {
		t.Errorf("20,000 models gave %d, want the first %d", len(ids), maxModels)
	}
}

// fetchIDs returns the ids of a compatible provider's list.
func fetchIDs(ctx context.Context, do upstream.Doer, conn *store.Connection, cred provider.Credential) []string {
	row := provider.Lookup(conn.Provider)
	if row == nil || !row.Compatible {
		return nil
	}
	req, err := compatibleRequest(row, conn, cred, fetchTimeout)
	if err != nil {
		return nil
	}
	body, err := answer(do.Start(ctx, req).Wait())
	if err != nil {
		return nil
	}
	models, _ := readList(row, body)
	var ids []string
	for i := range models {
		ids = append(ids, models[i].ID)
	}
	return ids
}
