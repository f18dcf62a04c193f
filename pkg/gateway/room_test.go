package gateway

import (
	"context"
	"io"
	"strings"
	"testing"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/edge"
)

// rooms counts what is taken and given back.
type rooms struct {
	used, most int64
	full       bool
}

func (r *rooms) Take(_ context.Context, _ string, want int64) (func(), error) {
	if r.full {
		return nil, apierr.New(503, "overloaded", "no room")
	}
	r.used += want
	r.most = max(r.most, r.used)
	return func() { r.used -= want }, nil
}

func TestRoomIsTakenForBodiesThatAreHeld(t *testing.T) {
	r := &rooms{}
	calls := 0
	g := newFixture().Gateway
	g.Room = r
	handler := func(context.Context, *auth.Call) (*edge.Response, error) {
		calls++
		return &edge.Response{Status: 204}, nil
	}
	g.SetRoutes([]Route{
		{Pattern: "/v1/json", Access: Public, MaxBody: maxJSON, Methods: []Method{{Name: "POST", Handler: handler}}},
		{Pattern: "/v1/form", Access: Public, MaxBody: maxForm, Methods: []Method{{Name: "POST", Handler: handler}}},
	})
	for _, tt := range []struct {
		name, path   string
		length, want int64
	}{
		{"small", "/v1/json", smallBody, 0},
		{"large", "/v1/json", smallBody + 1, smallBody + 1},
		{"unknown", "/v1/json", -1, maxJSON},
		{"counts_itself", "/v1/form", 1 << 20, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.most, r.full = 0, false
			ask := func() *edge.Response {
				return g.Serve(context.Background(), &edge.Request{Method: "POST", Path: tt.path, Length: tt.length, Body: io.NopCloser(strings.NewReader(""))})
			}
			if resp := ask(); resp.Status != 204 || r.most != tt.want || r.used != 0 {
				t.Errorf("status %d, took %d of which %d are left, want %d and 0", resp.Status, r.most, r.used, tt.want)
			}
			r.full = true
			before := calls
			if resp := ask(); (resp.Status == 503) != (tt.want > 0) || calls-before != map[bool]int{true: 0, false: 1}[tt.want > 0] {
				t.Errorf("status %d without room", resp.Status)
			}
		})
	}
}
