package api

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestRequestHasSizesOfItsBodies(t *testing.T) {
	w := newWorld(t)
	w.Answer = described
	machine, key := w.tenant(1)
	body := `{"model":"up/m","input":"x"}`
	answered := w.do("POST", "/v1/embeddings", key, body)
	refused := w.do("POST", "/v1/embeddings", key, `{"model":"none"}`)
	for i, want := range []struct {
		r      reply
		status int
		sent   int
	}{{refused, 400, len(`{"model":"none"}`)}, {answered, 200, len(body)}} {
		list := w.do("GET", "/"+machine+"/api/requests", adminToken, "").body
		got := gjson.Get(list, "data").Array()[i]
		if want.r.status != want.status || got.Get("requestBytes").Int() != int64(want.sent) || got.Get("answerBytes").Int() != int64(len(want.r.body)) {
			t.Errorf("status %d, %d bytes sent and %d answered: %s", want.r.status, want.sent, len(want.r.body), got.Raw)
		}
	}
}
