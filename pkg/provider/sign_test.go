package provider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

func TestSign(t *testing.T) {
	d := Lookup("bedrock")
	mantle := &Base{Auth: Auth{Scheme: SigV4, Service: "bedrock-mantle"}}
	region := conn("", "region", "EU-West-1")
	id, key, secretKey := secret.New("AKID"), secret.New("KEY"), secret.New("s")
	for _, tt := range []struct {
		name string
		base *Base
		conn *store.Connection
		cred Credential
		want string // credential of the signature
		err  error
	}{
		{"row", nil, region, Credential{AccessKeyID: id, APIKey: key, SecretAccessKey: secretKey}, "AKID/20260102/eu-west-1/bedrock/aws4_request", nil},
		{"further_base", mantle, region, Credential{AccessKeyID: id, SecretAccessKey: secretKey}, "AKID/20260102/eu-west-1/bedrock-mantle/aws4_request", nil},
		{"key_as_id", nil, region, Credential{APIKey: key, SecretAccessKey: secretKey}, "KEY/20260102/eu-west-1/bedrock/aws4_request", nil},
		{"no_secret", nil, region, Credential{AccessKeyID: id}, "", ErrNoCredential},
		{"no_region", nil, conn(""), Credential{AccessKeyID: id, SecretAccessKey: secretKey}, "", ErrIncomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := upstream.Request{Method: "GET", URL: "https://bedrock.eu-west-1.amazonaws.com/foundation-models"}
			err := Sign(&req, d, tt.base, tt.conn, tt.cred, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			if got := req.Header.Get("authorization"); !strings.Contains(got, "Credential="+tt.want+",") && tt.err == nil {
				t.Errorf("got %q, want %s", got, tt.want)
			}
		})
	}
}
