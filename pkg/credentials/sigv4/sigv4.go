// Package sigv4 signs requests with AWS Signature Version 4.
//
// Source: docs.aws.amazon.com, IAM User Guide, "Create a signed AWS API
// request"; checked against AWS's published test suite.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Keys are the credentials of one AWS principal, in the clear.
type Keys struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string // of temporary credentials; empty for others
}

// Scope says what a signature is good for, besides its day.
type Scope struct{ Region, Service string } // "us-east-1", "bedrock"

// The ways a request cannot be signed. None names a credential.
var (
	ErrKeys  = errors.New("sigv4: the access key, its secret or the session token is missing or malformed")
	ErrScope = errors.New("sigv4: the region or the service is missing or malformed")
	ErrBody  = errors.New("sigv4: only a body in memory can be signed")
	ErrURL   = errors.New("sigv4: the address cannot be signed")
)

const algorithm = "AWS4-HMAC-SHA256"

// Sign adds x-amz-date, x-amz-security-token where there is a session token,
// and authorization. Fields of these names that were there are replaced.
//
// Signed are the host, content-type and every x-amz- field: what the platform
// may add or change on its way stays out. Body and address must not change
// afterwards; the address must be in the platform's canonical form. Unless the
// service is S3, each segment of its path is encoded once more for the
// signature, as AWS does with what it receives: a model id's %3A is signed as
// %253A. For S3, where a path is signed as it is, each byte of it outside the unreserved
// ones of RFC 3986 must be encoded, and x-amz-content-sha256 is added.
func Sign(req *upstream.Request, keys Keys, scope Scope, now time.Time) error {
	return sign(req, keys, scope, now, picked)
}

// picked reports whether a field is signed.
func picked(name string) bool {
	return name == "content-type" || len(name) > 6 && name[:6] == "x-amz-"
}

func sign(req *upstream.Request, keys Keys, scope Scope, now time.Time, signed func(name string) bool) error {
	if keys.SecretAccessKey == "" || !word(keys.AccessKeyID) || keys.SessionToken != "" && !visible(keys.SessionToken) {
		return ErrKeys
	}
	if !word(scope.Region) || !word(scope.Service) {
		return ErrScope
	}
	sum, err := bodyDigest(req)
	if err != nil {
		return err
	}
	stamp := now.UTC().Format("20060102T150405Z")
	day := stamp[:8]
	req.Header.Del("authorization")
	req.Header.Set("x-amz-date", stamp)
	if scope.Service == "s3" {
		req.Header.Set("x-amz-content-sha256", hex.EncodeToString(sum))
	}
	if keys.SessionToken != "" {
		req.Header.Set("x-amz-security-token", keys.SessionToken)
	} else {
		req.Header.Del("x-amz-security-token")
	}
	canonical, names, err := canonicalRequest(req, scope.Service, sum, signed)
	if err != nil {
		return err
	}
	within := day + "/" + scope.Region + "/" + scope.Service + "/aws4_request"
	digest := sha256.Sum256(canonical)
	text := algorithm + "\n" + stamp + "\n" + within + "\n" + hex.EncodeToString(digest[:])

	key := mac([]byte("AWS4"+keys.SecretAccessKey), day)
	key = mac(key, scope.Region)
	key = mac(key, scope.Service)
	key = mac(key, "aws4_request")
	req.Header.Add("authorization", algorithm+" Credential="+keys.AccessKeyID+"/"+within+
		", SignedHeaders="+names+", Signature="+hex.EncodeToString(mac(key, text)))
	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// bodyDigest returns the SHA-256 of the body.
func bodyDigest(req *upstream.Request) ([]byte, error) {
	h := sha256.New()
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		h.Write(b.All())
	case *stream.Parts:
		for _, part := range b.All() {
			h.Write(part)
		}
	default:
		return nil, fmt.Errorf("%T: %w", req.Body, ErrBody)
	}
	return h.Sum(nil), nil
}

// word reports whether s can be a part of the credential scope.
func word(s string) bool {
	for i := 0; i < len(s); i++ {
		if !unreserved(s[i]) {
			return false
		}
	}
	return s != ""
}

// visible reports whether s can be a header's value and has no blank.
func visible(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
