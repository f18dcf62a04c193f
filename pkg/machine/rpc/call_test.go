package rpc_test

import (
	"encoding/json"
	"errors"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

const machine = "machine"

func TestCallReportsHowTheObjectAnswered(t *testing.T) {
	const busy = `{"error":{"message":"m","code":"busy"}}`
	for _, tt := range []struct {
		name   string
		status int
		answer string
		down   error
		want   int    // what Status returns
		code   string // of the *apierr.Error
		failed bool
	}{
		{"success", 200, `{"billed":true}`, nil, 200, "", false},
		{"created", 201, `{"billed":true}`, nil, 200, "", false},
		{"refused", 409, busy, nil, 409, "busy", true},
		{"refused without a reason", 404, "", nil, 404, "unavailable", true},
		{"redirect", 300, busy, nil, 300, "unavailable", true},
		{"unreachable", 0, "", errors.New("down"), 0, "unavailable", true},
		{"unreadable", 200, `{"billed":`, nil, 200, "", true},
	} {
		stub := &objects.Script{Answer: func(string, []byte) (int, []byte, error) {
			return tt.status, []byte(tt.answer), tt.down
		}}
		out, err := rpc.Call[rpc.Billed](t.Context(), stub, machine, "job.bill", rpc.JobBill{ID: "j"})
		if (err != nil) != tt.failed || rpc.Status(err) != tt.want || out.Billed == tt.failed {
			t.Errorf("%s: got %+v, %v, status %d", tt.name, out, err, rpc.Status(err))
		}
		code := ""
		if e, ok := errors.AsType[*apierr.Error](err); ok {
			code = e.Code
		}
		if code != tt.code {
			t.Errorf("%s: got the code %q, want %q", tt.name, code, tt.code)
		}
		if tt.down != nil && !errors.Is(err, tt.down) {
			t.Errorf("%s: the cause is lost: %v", tt.name, err)
		}
	}
}

func TestCallSendsAndReturnsBytesAsTheyAre(t *testing.T) {
	var sent []byte
	stub := &objects.Script{Answer: func(_ string, body []byte) (int, []byte, error) {
		sent = body
		return 200, []byte("not JSON"), nil
	}}
	out, err := rpc.Call[json.RawMessage](t.Context(), stub, machine, "op", json.RawMessage(`{ }`))
	if err != nil || string(out) != "not JSON" || string(sent) != "{ }" {
		t.Errorf("got %q, %v for %q", out, err, sent)
	}
	if _, err := rpc.Call[struct{}](t.Context(), stub, machine, "op", nil); err != nil || sent != nil {
		t.Errorf("no body: got %v for %q", err, sent)
	}
	// The bytes by which identical refreshes are recognized.
	const refresh = `{"connectionId":"c","tokenGeneration":7}`
	in := rpc.Refresh{ConnectionID: "c", TokenGeneration: 7}
	if _, err := rpc.Call[struct{}](t.Context(), stub, machine, "refresh", in); err != nil || string(sent) != refresh {
		t.Errorf("refresh: got %q, %v", sent, err)
	}
}

func TestCallUsesGeneratedCodecs(t *testing.T) {
	stub := objects.Constant(200, `{"observed":3}`)
	out, err := rpc.Call[rpc.Reported](t.Context(), stub, machine, "report", &rpc.Report{})
	if err != nil || out.Observed != 3 {
		t.Errorf("got %+v, %v", out, err)
	}
}
