package machine

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
)

// device starts sign-in n from an address and returns its user code.
func (w *world) device(n int, from string) string {
	w.Helper()
	status, a := w.At(rpc.RegistryID, "device.start", `{"digest":"`+inprocess.Digest(n)+`","name":"laptop","from":"`+from+`"}`)
	if status != 200 || len(a.Get("userCode").Str) != 8 {
		w.Fatalf("got %d %s", status, a.Raw)
	}
	return a.Get("userCode").Str
}

// polled polls sign-in n and returns the code of the error, or the machine.
func (w *world) polled(n int) string {
	w.Helper()
	status, a := w.At(rpc.RegistryID, "device.poll", `{"digest":"`+inprocess.Digest(n)+`"}`)
	if status == 200 {
		return a.Get("machineId").Str
	}
	return a.Get("error.code").Str
}

func (w *world) found(who, code string) (int, gjson.Result) {
	w.Helper()
	return w.At(rpc.RegistryID, "device.find", `{"who":"`+who+`","userCode":"`+code+`"}`)
}

func TestDeviceIsApprovedOnce(t *testing.T) {
	w := newWorld(t)
	code := w.device(1, "a")
	if got := w.polled(1); got != "authorization_pending" {
		t.Errorf("before: %s", got)
	}
	status, d := w.found("operator", code)
	if status != 200 || d.Get("name").Str != "laptop" || d.Get("digest").Str != inprocess.Digest(1) {
		t.Fatalf("got %d %s", status, d.Raw)
	}
	const mid = "m000000000000001"
	decide := `{"digest":"` + inprocess.Digest(1) + `","machineId":"` + mid + `"}`
	for i, want := range []int{200, 404} {
		if status, a := w.At(rpc.RegistryID, "device.decide", decide); status != want {
			t.Errorf("decision %d: got %d %s", i, status, a.Raw)
		}
	}
	if status, _ := w.found("operator", code); status != 404 {
		t.Errorf("found after the approval: %d", status)
	}
	if got := w.polled(1); got != mid {
		t.Errorf("approved: %s", got)
	}
	if got := w.polled(1); got != mid {
		t.Errorf("again: %s", got)
	}
}

func TestDevicePollsTooOftenAndTooLate(t *testing.T) {
	w := newWorld(t)
	w.device(1, "a")
	for i, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "authorization_pending"}, {time.Second, "slow_down"}, {5 * time.Second, "slow_down"},
		{14 * time.Second, "authorization_pending"}, {10 * time.Minute, "expired_token"}} {
		w.Clock.Add(tt.after)
		if got := w.polled(1); got != tt.want {
			t.Errorf("poll %d: %s, want %s", i, got, tt.want)
		}
	}
	w.device(2, "a")
	w.At(rpc.RegistryID, "device.decide", `{"digest":"`+inprocess.Digest(2)+`","machineId":""}`)
	if got := w.polled(2); got != "access_denied" {
		t.Errorf("denied: %s", got)
	}
}

func TestFiveWrongUserCodesEndAllTries(t *testing.T) {
	w := newWorld(t)
	code := w.device(1, "a")
	for i, want := range []int{404, 404, 404, 404, 429, 429} {
		if status, a := w.found("mallory", "BBBBBBBB"); status != want {
			t.Errorf("try %d: got %d %s", i, status, a.Raw)
		}
	}
	if status, _ := w.found("mallory", code); status != 429 {
		t.Errorf("the right code after five wrong ones: %d", status)
	}
	if status, _ := w.found("operator", code); status != 200 {
		t.Errorf("someone else: %d", status)
	}
}

func TestDevicesAreLimited(t *testing.T) {
	w := newWorld(t)
	for n := range attemptMost {
		w.device(n, "a")
	}
	if status, a := w.At(rpc.RegistryID, "device.start", `{"digest":"`+inprocess.Digest(99)+`","name":"x","from":"a"}`); status != 429 {
		t.Errorf("got %d %s", status, a.Raw)
	}
	for n := attemptMost; n < maxDevices; n++ {
		w.device(n, string(rune('b'+n/10)))
	}
	full := `{"digest":"` + inprocess.Digest(200) + `","name":"x","from":"zz"}`
	if status, a := w.At(rpc.RegistryID, "device.start", full); status != 429 {
		t.Errorf("a hundred wait: got %d %s", status, a.Raw)
	}
	w.Clock.Add(10 * time.Minute)
	if status, a := w.At(rpc.RegistryID, "device.start", full); status != 200 {
		t.Errorf("after they have expired: got %d %s", status, a.Raw)
	}
}
