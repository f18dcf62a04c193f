package machine

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
	"weir/pkg/machine/rpc"
)

// priceList returns a document with a price of gpt-5 and enough that do not change.
func priceList(issued time.Time, price string) string {
	models := map[string]string{}
	for _, m := range catalog.Models("openai") {
		if m.Price != "" {
			models[m.ID] = string(m.Price)
		}
	}
	models["gpt-5"] = price
	raw, _ := json.Marshal(map[string]any{
		"format": "weir-prices", "version": 1, "issuedAt": issued.Unix(), "prices": map[string]any{"openai": models},
	})
	return string(raw)
}

func TestRefreshStoresPricesOnceAnHour(t *testing.T) {
	for _, platform := range []string{"KV", "registry"} {
		t.Run(platform, func(t *testing.T) {
			w := newWorld(t)
			public, private, _ := ed25519.GenerateKey(nil)
			document, signature := priceList(w.Clock.Now(), "1/8/0.1"), ""
			sign := func() {
				signature = base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(document)))
			}
			sign()
			status, calls := 200, 0
			up := &fake.Upstream{Clock: w.Clock, Answer: func(s *fake.Seen) fake.Answer {
				calls++
				switch {
				case s.Header.Get("authorization") != "":
					t.Error("a credential is sent")
				case strings.HasSuffix(s.URL, ".sig"):
					return fake.Answer{Status: status, Body: signature}
				}
				return fake.Answer{Status: status, Body: document}
			}}
			f := &Refresher{
				Source: refresh.Source{URL: "https://prices.example/p.json", Key: public},
				Do:     up, KV: w.KV, Objects: w.Loc, Now: w.Clock.Now, Log: func(l string) { w.Logs = append(w.Logs, l) },
			}
			if platform == "registry" {
				f.KV = nil
			}
			now := func() catalog.Update {
				t.Helper()
				p, err := rpc.Prices(w.Ctx, f.KV, w.Loc)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			run := func(wantCalls int, price, logged string) {
				t.Helper()
				calls, w.Logs = 0, nil
				f.Refresh(w.Ctx, nil)
				if p := now(); calls != wantCalls || string(p.Price("openai", "gpt-5")) != price {
					t.Errorf("%d calls, %+v", calls, p)
				}
				if got := strings.Join(w.Logs, "\n"); !strings.Contains(got, logged) || logged == "" && got != "" {
					t.Errorf("logged %q, want %q", got, logged)
				}
			}
			run(2, "1/8/0.1", "1 prices differ from the catalogue, 0 held back, 0 models added, 0 with other limits, 0 out of bounds (signed)")
			w.Clock.Add(59 * time.Minute)
			document = priceList(w.Clock.Now(), "2/8/0.1")
			sign()
			run(0, "1/8/0.1", "")
			w.Clock.Add(time.Minute)
			document += " " // not what was signed
			run(2, "1/8/0.1", "the signature is not one of PRICES_KEY")
			if p := now(); p.FailedAt != w.Clock.Now().UnixMilli() || p.FetchedAt != p.FailedAt-time.Hour.Milliseconds() || p.Error == "" {
				t.Errorf("%+v", p)
			}
			w.Clock.Add(9 * time.Minute)
			run(0, "1/8/0.1", "")
			w.Clock.Add(time.Minute)
			run(2, "1/8/0.1", "") // logged once
			w.Clock.Add(10 * time.Minute)
			sign()
			run(2, "2/8/0.1", "(signed)")
			w.Clock.Add(time.Hour)
			document = priceList(w.Clock.Now().Add(-3*time.Hour), "1/8/0.1") // replayed
			sign()
			run(2, "2/8/0.1", "issuedAt is before")
			w.Clock.Add(10 * time.Minute)
			status = 404
			run(1, "2/8/0.1", "status 404")
			// Without the key the source is checked by bounds.
			w.Clock.Add(10 * time.Minute)
			status, f.Key = 200, nil
			run(1, "1/8/0.1", "(unsigned: bounds only)")
			w.Clock.Add(time.Hour)
			run(1, "1/8/0.1", "") // nothing has changed
			// Prices of another source are not a beginning for this one.
			f.URL = "https://other.example/p.json"
			document = `{"openai":1}`
			run(1, "", "it has 0 prices")
			w.Clock.Add(10 * time.Minute)
			document = priceList(w.Clock.Now(), "3/8/0.1")
			run(1, "3/8/0.1", fmt.Sprint(f.URL, ": 1 prices differ"))
			// Models are stored with the prices.
			w.Clock.Add(time.Hour)
			document = strings.Replace(document, `{`, `{"models":{"openai":{"gpt-next":{"kind":"llm"},"gpt-odd":{"kind":"odd"}}},`, 1)
			run(1, "3/8/0.1", "1 models added, 0 with other limits, 1 out of bounds")
			if p := now(); p.AddedModels != 1 || p.RefusedModels != 1 || len(p.Lookup("openai", "gpt-next")) != 1 {
				t.Errorf("%+v", p)
			}
			// A price of a model of the source alone that no vendor asks is named once.
			w.Clock.Add(time.Hour)
			document = strings.Replace(document, `"prices":{"openai":{`, `"prices":{"openai":{"gpt-next":"99999/99999",`, 1)
			run(1, "3/8/0.1", "dearer than any vendor's, left out: openai/gpt-next")
			w.Clock.Add(time.Hour)
			run(1, "3/8/0.1", "")
		})
	}
}

func TestRegistryRefusesUnreadablePrices(t *testing.T) {
	w := newWorld(t)
	if status, _, err := w.Loc.Call(w.Ctx, rpc.RegistryID, "prices.put", []byte(`{"text":1}`)); err != nil || status != 400 {
		t.Errorf("%d %v", status, err)
	}
	if p, err := rpc.Prices(w.Ctx, nil, w.Loc); err != nil || p != (catalog.Update{}) {
		t.Errorf("%+v %v", p, err)
	}
}
