package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

func TestCredentialHasAtMost512Bytes(t *testing.T) {
	k := newKeys(t)
	old := func(n int) string { return "sk-" + strings.Repeat("a", n-3) }
	field := func(name, value string) httpmsg.Header { return httpmsg.Header{{Name: name, Value: value}} }
	for _, tt := range []struct {
		name   string
		header httpmsg.Header
		want   int
		text   error
	}{
		{"a key that fits", field("x-api-key", old(rpc.MaxKey)), 400, nil},
		{"a key that is one byte too long", field("x-api-key", old(rpc.MaxKey+1)), 401, rpc.ErrNotKey()},
		{"an Authorization header that fits", field("authorization", "Bearer "+old(rpc.MaxKey-len("Bearer "))), 400, nil},
		{"an Authorization header that is one byte too long", field("authorization", "Bearer "+old(rpc.MaxKey+1-len("Bearer "))), 401, rpc.ErrNotBearer()},
	} {
		_, err := k.auth.Data(context.Background(), &httpmsg.Request{Path: "/v1/embeddings", Header: tt.header}, "")
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != tt.want || tt.text != nil && !reflect.DeepEqual(err, tt.text) {
			t.Errorf("%s: got %v, want %d", tt.name, err, tt.want)
		}
	}
}

// A damaged digest in a record matches no key.
func TestDamagedDigestMatchesNoKey(t *testing.T) {
	text, key, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	parsed, _ := rpc.ParseKey(text)
	for _, digest := range []string{"", "zz", key.Digest[:62], key.Digest[:62] + "zz"} {
		m := snapshot.New(&store.Machine{ID: mid, Keys: []store.Key{{ID: key.ID, Digest: digest}}})
		if m.FindKey(parsed.Digest, nil) != nil {
			t.Errorf("digest %q matches", digest)
		}
	}
}

func TestLongPathIsNotRepeated(t *testing.T) {
	fits := "/" + strings.Repeat("a", 99)
	if shown(fits) != fits || shown(fits+"a") != "/v1/…" {
		t.Errorf("got %q and %q", shown(fits), shown(fits+"a"))
	}
}
