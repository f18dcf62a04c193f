package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// A request reads as in the dashboard: what happened, names in place of ids, and what to do.
func TestRequestsAreShownInWords(t *testing.T) {
	for name, tt := range map[string]struct{ row, want string }{
		"fallback": {`{"id":"req_1","at":1795978952494,"keyId":"k1","endpoint":"/v1/chat/completions","asked":"team","model":"local/slow",
			"provider":"openai-compatible-0123abcd","connectionId":"c2","status":200,"outcome":"succeeded","latencyMs":1210,"firstMs":700,"sentMs":10,
			"attempts":2,"failed":[{"connectionId":"c1","provider":"openai","model":"openai/echo","status":401,"code":"invalid_api_key",
			"text":"Provider said: “Incorrect API key”","sentMs":2,"ms":5}],"dropped":["logprobs","max_tokens=64"],"tags":["a=b","c=d"],"tool":"codex",
			"inputTokens":13,"cacheReadTokens":5,"outputTokens":24,"reasoningTokens":4,"costUsd":0.5,"priced":true,"captured":true,
			"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`, `Answered by local, after Main refused the key.

Request      req_1
Time         TIME
Status       200
Endpoint     /v1/chat/completions
Key          laptop
Tool         codex
Tags         a=b, c=d
Model        team → local/slow
Account      local
Provider     OpenAI-compatible
Latency      1210 ms, first token after 700 ms
Input        13, 5 of them cached
Output       24, 4 of them reasoning
Cost         $0.50
Not sent     logprobs
Set by weir  max_tokens=64
Trace        0af7651916cd43dd8448eb211c80319c

TRY  ACCOUNT  PROVIDER           MODEL        RESULT           DURATION
  1  Main     OpenAI             openai/echo  401 key refused      5 ms
  2  local    OpenAI-compatible  local/slow   answered          1200 ms
Main: Provider said: “Incorrect API key” (invalid_api_key)

TIMING                         START  DURATION
weir                            0 ms      2 ms
Main: 401 key refused           2 ms      5 ms
wait before the next attempt    7 ms      3 ms
local: first token             10 ms    690 ms
local: rest of the stream     700 ms    510 ms

Next:
  weir accounts rotate Main --machine main       replaces the key
  weir captures show req_1 --machine main        prints the prompt and the answer
  weir explain team --key laptop --machine main  shows the accounts in order
`},
		"refused": {`{"id":"req_2","at":1795978952494,"keyId":"gone","endpoint":"/v1/embeddings","asked":"nope/x","status":400,"error":"model_not_found",
			"outcome":"refused","reason":"model","message":"Unknown model. GET /v1/models lists those that this API key can call.","latencyMs":0,"attempts":0}`,
			`Refused by weir: model.
Unknown model. weir models lists those that this API key can call. (model_not_found)

Request   req_2
Time      TIME
Status    400
Endpoint  /v1/embeddings
Key       gone
Model     nope/x
Latency   0 ms

Not sent to a provider.

Next:
  weir models --machine main  lists the models
`},
		"failed": {`{"id":"req_3","at":1795978952494,"endpoint":"/v1/embeddings","asked":"openai/e","model":"openai/e","provider":"openai","connectionId":"c1",
			"status":502,"error":"upstream_unreachable","outcome":"provider_failed","latencyMs":9,"attempts":1,
			"failed":[{"connectionId":"c1","provider":"openai","model":"openai/e","status":502,"code":"upstream_unreachable","ms":9}]}`,
			`Failed: Main could not be reached.

Request   req_3
Time      TIME
Status    unreachable (upstream_unreachable)
Endpoint  /v1/embeddings
Model     openai/e
Latency   9 ms

TRY  ACCOUNT  PROVIDER  MODEL     RESULT       DURATION
  1  Main     OpenAI    openai/e  unreachable      9 ms

TIMING             START  DURATION
Main: unreachable   0 ms      9 ms

Next:
  weir accounts test Main --machine main                      calls it once
  weir explain openai/e --path /v1/embeddings --machine main  shows the accounts in order
`},
	} {
		var out bytes.Buffer
		a := &app{Host: Host{Stdout: &out}, machine: "main", known: map[string]string{"k1": "laptop", "c1": "Main", "c2": "local"}}
		if err := a.printRequest(tt.row); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(1795978952494).Format(time.DateTime)
		if got := string(bytes.Replace(out.Bytes(), []byte(at), []byte("TIME"), 1)); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, tt.want)
		}
	}
}

// A sentence says what became of a request, as the badge of the dashboard.
func TestWhatBecameOfARequest(t *testing.T) {
	a := &app{known: map[string]string{"c1": "Main"}}
	for row, want := range map[string]string{
		`{"status":499,"outcome":"left"}`:                                                                          "The client disconnected before the end of the answer.",
		`{"status":200,"error":"upstream_cut","connectionId":"c1","attempts":1}`:                                   "Interrupted: Main ended its answer too early.",
		`{"status":503,"outcome":"no_account","error":"no_credentials"}`:                                           "No account could be tried.",
		`{"status":429,"outcome":"refused","reason":"key_limit"}`:                                                  "Refused by weir: key limit.",
		`{"status":400,"outcome":"refused","reason":"request"}`:                                                    "Refused by weir: invalid request.",
		`{"status":504,"outcome":"provider_failed"}`:                                                               "Failed: 504 timed out.",
		`{"status":418,"outcome":"provider_failed","attempts":1,"failed":[{"connectionId":"c1","status":418}]}`:    "Failed: Main answered with status 418.",
		`{"status":500,"outcome":"provider_failed","attempts":1,"failed":[{"provider":"anthropic","status":599}]}`: "Failed: Anthropic had an error.",
	} {
		r := &request{app: a}
		if err := json.Unmarshal([]byte(row), &r.row); err != nil {
			t.Fatal(err)
		}
		if got := r.what(); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

// The error of a call says when it may be repeated, and messages name one exact command.
func TestErrorsNameTheWaitAndTheCommand(t *testing.T) {
	for _, tt := range []struct{ body, wait, want string }{
		{`{"error":{"message":"All accounts wait.","code":"rate_limit_exceeded"}}`, "12", "All accounts wait. (rate_limit_exceeded); try again in 12 s"},
		{`{"error":{"message":"It is paused. Enable it on the page Providers, or with weir accounts resume up.","code":"no_credentials"}}`, "",
			"It is paused. To resume it: weir accounts resume up. (no_credentials)"},
	} {
		if got := (&apiError{status: 503, body: []byte(tt.body), wait: tt.wait}).Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
