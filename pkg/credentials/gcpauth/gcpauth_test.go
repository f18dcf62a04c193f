package gcpauth

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/credentials/oauth"
	"weir/pkg/wire/secret"
)

const (
	tokenURL = "https://oauth2.googleapis.com/token"
	scope    = "https://www.googleapis.com/auth/cloud-platform"
)

var (
	ctx = context.Background()
	now = time.Unix(1_700_000_000, 0)
)

// sign is what the platform does.
var sign Signer = func(_ context.Context, pkcs8, data []byte) ([]byte, error) {
	k, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return rsa.SignPKCS1v15(nil, k.(*rsa.PrivateKey), crypto.SHA256, sum[:])
}

// keyFile makes a key and its file, changed by edit.
func keyFile(t *testing.T, edit func(map[string]string)) (*rsa.PrivateKey, secret.Secret) {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	f := map[string]string{
		"type": "service_account", "project_id": "p-1", "private_key_id": `kid"1`, "client_email": "weir@p-1.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   "https://evil.test/token",
	}
	if edit != nil {
		edit(f)
	}
	b, _ := json.Marshal(f)
	return k, secret.New(string(b))
}

// google answers a token endpoint that checks the assertion as Google does.
type google struct {
	*fake.Upstream
	t      *testing.T
	key    *rsa.PublicKey
	status int
	answer string
}

func newGoogle(t *testing.T, key *rsa.PublicKey) *google {
	g := &google{Upstream: &fake.Upstream{}, t: t, key: key}
	g.Answer = g.reply
	return g
}

func (g *google) reply(req *fake.Seen) fake.Answer {
	form, err := url.ParseQuery(req.Body)
	if err != nil || req.Method != "POST" || req.URL != tokenURL || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		g.t.Errorf("%s %s %s", req.Method, req.URL, req.Body)
	}
	parts := strings.Split(form.Get("assertion"), ".")
	if len(parts) != 3 {
		g.t.Fatalf("assertion %q", form.Get("assertion"))
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], sig) != nil {
		g.t.Error("the signature is wrong")
	}
	var head struct{ Alg, Typ, Kid string }
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	for i, v := range []any{&head, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, v) != nil {
			g.t.Errorf("part %d: %s", i, raw)
		}
	}
	if head.Alg != "RS256" || head.Typ != "JWT" || head.Kid != `kid"1` {
		g.t.Errorf("%+v", head)
	}
	if claims.Iss != "weir@p-1.iam.gserviceaccount.com" || claims.Scope != scope || claims.Aud != tokenURL {
		g.t.Errorf("%+v", claims)
	}
	if claims.Iat > now.Unix() || claims.Exp <= now.Unix() || claims.Exp-claims.Iat != 3600 {
		g.t.Errorf("issued %d, ends %d, now %d", claims.Iat, claims.Exp, now.Unix())
	}
	return fake.Answer{Status: g.status, Body: g.answer}
}

func TestTokenOfAServiceAccount(t *testing.T) {
	private, file := keyFile(t, nil)
	k, err := ParseKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if k.ProjectID != "p-1" || strings.Contains(fmt.Sprintf("%v %+v %#v", k, k, k), "pkcs8") {
		t.Errorf("%+v", k)
	}
	g := newGoogle(t, &private.PublicKey)
	g.status, g.answer = 200, `{"access_token":"ya29.access","expires_in":3599,"token_type":"Bearer","refresh_token":"never-kept"}`
	tok, err := Token(ctx, g, sign, k, scope, tokenURL, now)
	if err != nil || tok.Access.Reveal() != "ya29.access" || !tok.Refresh.IsZero() || tok.ExpiresAt != now.Add(3539*time.Second) || len(g.Seen) != 1 {
		t.Errorf("%+v %v", tok, err)
	}
	g.status, g.answer = 400, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`
	var f *oauth.Failure
	if _, err := Token(ctx, g, sign, k, scope, tokenURL, now); !errors.As(err, &f) || f.Kind != oauth.Reauth {
		t.Errorf("%v", err)
	}
}

func TestFailedSignerSendsNoCall(t *testing.T) {
	_, file := keyFile(t, nil)
	k, _ := ParseKey(file)
	g := newGoogle(t, nil)
	bad := Signer(func(context.Context, []byte, []byte) ([]byte, error) { return nil, errors.New("no RSA key") })
	if _, err := Token(ctx, g, bad, k, scope, tokenURL, now); err == nil || len(g.Seen) != 0 {
		t.Errorf("%v, %d calls", err, len(g.Seen))
	}
}

func TestInvalidKeyFiles(t *testing.T) {
	tests := []struct {
		name string
		edit func(map[string]string)
		want string
	}{
		{"other_type", func(f map[string]string) { f["type"] = "authorized_user" }, "type"},
		{"no_email", func(f map[string]string) { delete(f, "client_email") }, "client_email"},
		{"no_key", func(f map[string]string) { delete(f, "private_key") }, "private_key"},
		{"no_pem", func(f map[string]string) { f["private_key"] = "c2VjcmV0" }, "private_key"},
		{"pkcs1", func(f map[string]string) {
			f["private_key"] = strings.ReplaceAll(f["private_key"], "PRIVATE", "RSA PRIVATE")
		}, "private_key"},
		{"too_long", func(f map[string]string) { f["x"] = strings.Repeat("x", 32<<10) }, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, file := keyFile(t, tt.edit)
			if k, err := ParseKey(file); k != nil || !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "BEGIN") {
				t.Errorf("%v %v", k, err)
			}
		})
	}
	if _, err := ParseKey(secret.New(`{"type":`)); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
}
