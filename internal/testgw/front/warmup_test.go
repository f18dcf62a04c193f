package front

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const (
	warmupFile = "../../../worker/js/machine.mjs"
	embedding  = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAEA="}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
)

// post serves a request to its end and returns its answer, which must have the status.
func post(t *testing.T, g *Gateway, status int, path, key, body string) string {
	t.Helper()
	r := &httpmsg.Request{
		Method: "POST", Path: path, Origin: "http://warmup.example", Start: g.Now(), Length: int64(len(body)), Body: stream.FromString(body),
		Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "content-type", Value: "application/json"}},
	}
	resp := g.App.Serve(context.Background(), r)
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.Status != status {
		t.Fatalf("POST %s: %d %s %v, want %d", path, resp.Status, text, err, status)
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return string(text)
}

// recorded returns the text of machine.mjs for a new machine with one account.
func recorded(t *testing.T) string {
	g := New(nil)
	created := post(t, g, 201, "/api/machines", AdminToken, `{}`)
	id := gjson.Get(created, "machineId").Str
	post(t, g, 201, "/"+id+"/api/providers", AdminToken,
		`{"provider":"openai-compatible-0123abcd","apiKey":"warmup-key","providerSpecificData":{"baseUrl":"http://warmup.example/v1","prefix":"r"}}`)
	var out strings.Builder
	fmt.Fprintf(&out, `// The machine of the warm-up, as this program stores it. Its secrets protect nothing.
// Written by GOLDEN=update go test ./internal/testgw/front; DO NOT EDIT.
export const SECRETS = {
  ADMIN_TOKEN: "%s",
  API_KEY_SECRET: "%s",
  CREDENTIALS_KEY: "%s",
};
export const MACHINE = "%s";
export const API_KEY = "%s";
export const ROWS = [
`, AdminToken, keySecret, sealSecret, id, gjson.Get(created, "apiKey").Str)
	rows := g.Objects.Storage(id).Dump()
	names := make([]string, 0, len(rows))
	for name := range rows {
		if name == "meta" || strings.HasPrefix(name, "key:") || strings.HasPrefix(name, "conn:") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&out, "  [\n    \"%s\",\n    '%s',\n  ],\n", name, rows[name])
	}
	return out.String() + "];\n"
}

// TestStoredMachineOfTheWarmupIsServed reports that the program has changed how it
// stores a machine, so that the warm-up would fail.
func TestStoredMachineOfTheWarmupIsServed(t *testing.T) {
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(warmupFile, []byte(recorded(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(warmupFile)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		m := regexp.MustCompile(name + `(?: =|:) "(.*)"`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no %s: run this test with GOLDEN=update", warmupFile, name)
		}
		return string(m[1])
	}
	if value("ADMIN_TOKEN") != AdminToken || value("API_KEY_SECRET") != keySecret || value("CREDENTIALS_KEY") != sealSecret {
		t.Error("other secrets: run this test with GOLDEN=update")
	}
	g := New(nil)
	g.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(embedding) }
	st := g.Objects.Storage(value("MACHINE"))
	for _, m := range regexp.MustCompile(`(?m)^ {4}"(.*)",\n {4}'(.*)',$`).FindAllSubmatch(text, -1) {
		st.Rows[string(m[1])] = m[2]
	}
	if len(st.Rows) != 3 {
		t.Fatalf("%d rows, want 3: run this test with GOLDEN=update", len(st.Rows))
	}
	post(t, g, 200, "/v1/embeddings", value("API_KEY"), `{"model":"r/m","input":"a","encoding_format":"base64"}`)
}
