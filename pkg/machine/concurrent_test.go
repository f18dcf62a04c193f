package machine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
)

// The objects of different machines run at the same time in one program: each has its own
// reports and tokens.
func TestConcurrentTurnsOfDifferentMachines(t *testing.T) {
	const machines, rounds = 8, 40
	clock := fake.NewClock(time.UnixMilli(1_800_000_000_000))
	var issued atomic.Int64
	up := &fake.Upstream{Clock: clock, Answer: func(*fake.Seen) fake.Answer {
		n := issued.Add(1)
		return fake.JSON(fmt.Sprintf(`{"access_token":"access-token-%06d","refresh_token":"refresh-token-%06d","expires_in":3600}`, n, n))
	}}
	o := &Object{KV: fake.NewKV(), Manager: manage.Manager{Began: 1, KeySecret: []byte(strings.Repeat("s", 32)), Service: tokens.Service{
		Keyring: sealed.Keys(t), Objects: objects.Constant(200, `{}`), Do: up, Now: clock.Now, Rand: rand.Reader, Log: func(string) {},
		OAuth: []oauth.Provider{{ID: oauthID, TokenURL: "https://login.example.com/token", ClientID: "weir-client"}},
	}}}
	o.TakeOver([]byte(`{"machine000000009":{"usage":[]}}`))
	var mu sync.Mutex
	seats := map[string]bool{}
	var all sync.WaitGroup
	for i := range machines {
		all.Go(func() {
			ctx, id, st := context.Background(), fmt.Sprintf("machine%09d", i), objects.NewStorage()
			call := func(op, body string) gjson.Result {
				status, answer := o.Handle(ctx, st, id, op, []byte(body))
				st.Flush()
				if status >= 300 {
					t.Errorf("%s of %s: %d %s", op, id, status, answer)
				}
				return gjson.ParseBytes(answer)
			}
			call("create", `{"name":"demo"}`)
			raw, _ := json.Marshal(rpc.ManageCall{Method: "POST", Route: "/api/providers", Body: json.RawMessage(
				`{"provider":"` + oauthID + `","accessToken":"access-token-0","refreshToken":"refresh-token-0","providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`)})
			conn := call("manage", string(raw)).Get("body.id").Str
			generation := call("snapshot", `{}`).Get("connections.0.tokenGeneration").Int()
			for n := range rounds {
				call("report", fmt.Sprintf(`{"usage":[{"keyId":"k","connectionId":%q,"model":"openai/m","requests":1,"calls":1}],"cooldowns":[{"connectionId":%q,"model":"m%d","until":%d}]}`, conn, conn, n, clock.Now().UnixMilli()+1000))
				call("snapshot", `{}`)
				call("idem.begin", fmt.Sprintf(`{"key":"k%d","digest":"d"}`, n))
				if n%10 == 0 { // the token cannot be stored at first
					clock.Add(2 * time.Minute)
					st.Fault = func(key string) bool { return strings.HasPrefix(key, storage.ConnectionPrefix) }
					call("refresh", inprocess.RefreshBody(conn, generation))
					st.Fault = nil
					o.Alarm(ctx, st, id)
					st.Flush()
					generation++
				}
				o.Buffered()
			}
			usage, _ := json.Marshal(rpc.ManageCall{Method: "GET", Route: "/api/usage", Query: map[string]string{}})
			if got := call("manage", string(usage)).Get("body.total.requests").Int(); got != rounds {
				t.Errorf("%s has %d calls, want %d", id, got, rounds)
			}
			if got := call("snapshot", `{}`).Get("connections.0.tokenGeneration").Int(); got != generation {
				t.Errorf("%s has generation %d of its token, want %d", id, got, generation)
			}
			for name, row := range st.Rows {
				if strings.HasPrefix(name, idemPrefix) {
					mu.Lock()
					seats[gjson.GetBytes(row, "seat").Str] = true
					mu.Unlock()
				}
			}
			call("report", fmt.Sprintf(`{"usage":[{"keyId":"k","connectionId":%q,"model":"openai/m","requests":1,"calls":1}]}`, conn))
			call("delete", `{}`)
		})
	}
	all.Wait()
	if len(seats) != 1 || seats["unknown"] || seats[""] {
		t.Errorf("the program has the names %v", seats)
	}
	if issued.Load() != machines*rounds/10 || len(o.Flights)+len(o.Unsaved) != 0 {
		t.Errorf("%d refreshes, %d under way, %d tokens are not stored", issued.Load(), len(o.Flights), len(o.Unsaved))
	}
	if o.HandOver(); o.buffers.size != 0 {
		t.Errorf("%d bytes are buffered", o.buffers.size)
	}
}
