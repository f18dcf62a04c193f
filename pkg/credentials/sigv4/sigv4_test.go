package sigv4

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

var (
	suiteKeys = Keys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	suiteTime = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
)

const suiteToken = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

const all = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// The published AWS Signature Version 4 test suite, by its own names: region
// us-east-1, service "service", host example.amazonaws.com.
func TestPublishedSuite(t *testing.T) {
	tests := []struct {
		name, method, path string
		header             httpmsg.Header
		body, token        string
		names, signature   string // SignedHeaders without host and x-amz-date when empty
	}{
		{name: "get-header-key-duplicate", header: httpmsg.Header{{Name: "my-header1", Value: "value2"}, {Name: "my-header1", Value: "value2"}, {Name: "my-header1", Value: "value1"}}, names: "host;my-header1;x-amz-date", signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
		{name: "get-header-value-multiline", header: httpmsg.Header{{Name: "my-header1", Value: "value1,value2,value3"}}, names: "host;my-header1;x-amz-date", signature: "ba17b383a53190154eb5fa66a1b836cc297cc0a3d70a5d00705980573d8ff790"},
		{name: "get-header-value-order", header: httpmsg.Header{{Name: "my-header1", Value: "value4"}, {Name: "my-header1", Value: "value1"}, {Name: "my-header1", Value: "value3"}, {Name: "my-header1", Value: "value2"}}, names: "host;my-header1;x-amz-date", signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
		{name: "get-header-value-trim", header: httpmsg.Header{{Name: "my-header1", Value: " value1"}, {Name: "my-header2", Value: ` "a   b   c" `}}, names: "host;my-header1;my-header2;x-amz-date", signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{name: "get-unreserved", path: "/" + all, signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{name: "get-utf8", path: "/ሴ", signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		{name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{name: "get-vanilla-empty-query-key", path: "/?Param1=value1", signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		{name: "get-vanilla-query", path: "/?", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{name: "get-vanilla-query-order-key", path: "/?Param1=value2&Param1=Value1", signature: "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
		{name: "get-vanilla-query-order-key-case", path: "/?Param2=value2&Param1=value1", signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{name: "get-vanilla-query-order-value", path: "/?Param1=value2&Param1=value1", signature: "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
		{name: "get-vanilla-query-unreserved", path: "/?" + all + "=" + all, signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
		{name: "get-vanilla-utf8-query", path: "/?ሴ=bar", signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		{name: "get-slash-dot-slash", path: "/./", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{name: "get-slash-pointless-dot", path: "/./example", signature: "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
		{name: "get-slashes", path: "//example//", signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
		{name: "get-space", path: "/example space/", signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
		{name: "post-header-key-sort", method: "POST", header: httpmsg.Header{{Name: "my-header1", Value: "value1"}}, names: "host;my-header1;x-amz-date", signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
		{name: "post-header-value-case", method: "POST", header: httpmsg.Header{{Name: "my-header1", Value: "VALUE1"}}, names: "host;my-header1;x-amz-date", signature: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
		{name: "post-sts-header-before", method: "POST", token: suiteToken, names: "host;x-amz-date;x-amz-security-token", signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
		{name: "post-vanilla", method: "POST", signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{name: "post-vanilla-query", method: "POST", path: "/?Param1=value1", signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
		{name: "post-vanilla-query-nonunreserved", method: "POST", path: "/?%40%23%24%25%5E=&%2B=/%2C%3F%3E%3C%60%22%3B%3A%5C%7C%5D%5B%7B%7D", signature: "66c82657c86e26fb25238d0e69f011edc4c6df5ae71119d7cb98ed9b87393c1e"},
		{name: "post-vanilla-query-space", method: "POST", path: "/?p=", signature: "e71688addb58a26418614085fb730ba3faa623b461c17f48f2fbdb9361b94a9b"},
		{name: "post-x-www-form-urlencoded", method: "POST", header: httpmsg.Header{{Name: "content-type", Value: "application/x-www-form-urlencoded"}}, body: "Param1=value1", names: "content-type;host;x-amz-date", signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		{name: "post-x-www-form-urlencoded-parameters", method: "POST", header: httpmsg.Header{{Name: "content-type", Value: "application/x-www-form-urlencoded; charset=utf8"}}, body: "Param1=value1", names: "content-type;host;x-amz-date", signature: "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := &upstream.Request{Method: "GET", URL: "https://example.amazonaws.com", Header: tt.header}
			if tt.method != "" {
				req.Method = tt.method
			}
			req.URL += "/" + strings.TrimPrefix(tt.path, "/")
			if tt.name == "get-slashes" {
				req.URL = "https://example.amazonaws.com" + tt.path
			}
			if tt.body != "" {
				req.Body = stream.FromString(tt.body)
			}
			keys := suiteKeys
			keys.SessionToken = tt.token
			if err := sign(req, keys, Scope{"us-east-1", "service"}, suiteTime, func(string) bool { return true }); err != nil {
				t.Fatal(err)
			}
			names := tt.names
			if names == "" {
				names = "host;x-amz-date"
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + names + ", Signature=" + tt.signature
			if got := req.Header.Get("authorization"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Signatures of Bedrock requests as AWS's own JavaScript signer makes them
// (@smithy/signature-v4 5.7).
func TestBedrockPathsAreEncodedTwice(t *testing.T) {
	temporary := suiteKeys
	temporary.SessionToken = "IQoJb3JpZ2luX2VjEXAMPLE//token=="
	tests := []struct {
		name, method, path, body string
		keys                     Keys
		names, signature         string
	}{
		{"colon_of_a_model_id", "POST", "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse", `{"messages":[]}`, temporary,
			"content-type;host;x-amz-date;x-amz-security-token", "2f0b20b666b76f24fd6547c04867b999220cb2ee0bd395662d7cc3ec040e7616"},
		{"slash_of_a_profile_arn", "POST", "/model/arn%3Aaws%3Abedrock%3Aus-west-2%3A123456789012%3Ainference-profile%2Fus.x%3A0/converse-stream", `{}`, suiteKeys,
			"content-type;host;x-amz-date", "911537d758a0bece81f44349803edd1e47dc7fa00ef631f31073fb164ac2d08d"},
		{"query_of_the_next_page", "GET", "/inference-profiles?nextToken=a%2Fb%2Bc%3D%3D&maxResults=1000", "", temporary,
			"host;x-amz-date;x-amz-security-token", "cb546efeaedff6cb3c1d4df2ad4cf5a4e5ddfea99e4d2c8451580a1b8365c766"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := &upstream.Request{Method: tt.method, URL: "https://bedrock-runtime.us-west-2.amazonaws.com" + tt.path}
			// Unsigned fields may change on their way.
			req.Header = httpmsg.Header{{Name: "accept", Value: "application/json"}, {Name: "authorization", Value: "Bearer old"}, {Name: "x-amz-date", Value: "old"}}
			if tt.body != "" {
				req.Header.Add("content-type", "application/json")
				req.Body = stream.FromString(tt.body)
			}
			if err := Sign(req, tt.keys, Scope{"us-west-2", "bedrock"}, suiteTime); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-west-2/bedrock/aws4_request, SignedHeaders=" + tt.names + ", Signature=" + tt.signature
			if got := req.Header.Get("authorization"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if got := req.Header.Get("x-amz-security-token"); got != tt.keys.SessionToken {
				t.Errorf("token %q, want %q", got, tt.keys.SessionToken)
			}
			n := 0
			for _, f := range req.Header {
				if f.Name == "authorization" || f.Name == "x-amz-date" {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%d fields of authorization and x-amz-date, want one each", n)
			}
		})
	}
}

// The examples of "Signature Calculations for the Authorization Header: Transferring
// Payload in a Single Chunk" in the Amazon S3 API Reference.
func TestPublishedExamplesOfS3(t *testing.T) {
	tests := []struct {
		name, method, path string
		header             httpmsg.Header
		body               string
		names, signature   string
	}{
		{"get_object", "GET", "/test.txt", httpmsg.Header{{Name: "range", Value: "bytes=0-9"}}, "",
			"host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"put_object", "PUT", "/test%24file.text", httpmsg.Header{{Name: "date", Value: "Fri, 24 May 2013 00:00:00 GMT"},
			{Name: "x-amz-storage-class", Value: "REDUCED_REDUNDANCY"}}, "Welcome to Amazon S3.",
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"get_bucket_lifecycle", "GET", "/?lifecycle", nil, "", "host;x-amz-content-sha256;x-amz-date",
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"list_objects", "GET", "/?max-keys=2&prefix=J", nil, "", "host;x-amz-content-sha256;x-amz-date",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	}
	keys := Keys{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	now := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := &upstream.Request{Method: tt.method, URL: "https://examplebucket.s3.amazonaws.com" + tt.path, Header: tt.header}
			if tt.body != "" {
				req.Body = stream.FromString(tt.body)
			}
			if err := sign(req, keys, Scope{"us-east-1", "s3"}, now, func(string) bool { return true }); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=" +
				tt.names + ", Signature=" + tt.signature
			if got := req.Header.Get("authorization"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestS3PathIsSignedUnchanged(t *testing.T) {
	req := &upstream.Request{Method: "GET", URL: "https://b.s3.amazonaws.com/a%20b//c"}
	text, _, err := canonicalRequest(req, "s3", make([]byte, 32), picked)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(string(text), "\n")[1]; got != "/a%20b//c" {
		t.Errorf("path %q", got)
	}
}

func TestHostIsSignedWithoutADefaultPort(t *testing.T) {
	for url, want := range map[string]string{
		"https://h.example:443/": "h.example", "https://h.example:8443/": "h.example:8443",
		"http://127.0.0.1:80": "127.0.0.1", "https://H.Example?x=1": "h.example", "http://h:443/": "h:443",
	} {
		if host, path, _, err := split(url); err != nil || host != want || path != "/" {
			t.Errorf("%s: %q %q %v, want %q", url, host, path, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	ok := Scope{"us-east-1", "bedrock"}
	tests := []struct {
		name  string
		req   upstream.Request
		keys  Keys
		scope Scope
		want  error
	}{
		{"no_secret", upstream.Request{URL: "https://h/"}, Keys{AccessKeyID: "A"}, ok, ErrKeys},
		{"no_key", upstream.Request{URL: "https://h/"}, Keys{SecretAccessKey: "s"}, ok, ErrKeys},
		{"line_break_in_key", upstream.Request{URL: "https://h/"}, Keys{AccessKeyID: "A\r\nX: 1", SecretAccessKey: "s"}, ok, ErrKeys},
		{"line_break_in_token", upstream.Request{URL: "https://h/"}, Keys{AccessKeyID: "A", SecretAccessKey: "s", SessionToken: "a\nb"}, ok, ErrKeys},
		{"no_region", upstream.Request{URL: "https://h/"}, suiteKeys, Scope{"", "bedrock"}, ErrScope},
		{"slash_in_region", upstream.Request{URL: "https://h/"}, suiteKeys, Scope{"us/east", "bedrock"}, ErrScope},
		{"body_that_streams", upstream.Request{URL: "https://h/", Body: io.NopCloser(strings.NewReader("x"))}, suiteKeys, ok, ErrBody},
		{"no_scheme", upstream.Request{URL: "h/"}, suiteKeys, ok, ErrURL},
		{"userinfo", upstream.Request{URL: "https://u@h/"}, suiteKeys, ok, ErrURL},
		{"broken_escape", upstream.Request{URL: "https://h/?a=%4"}, suiteKeys, ok, ErrURL},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Sign(&tt.req, tt.keys, tt.scope, suiteTime)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.req.Header.Get("authorization") != "" {
				t.Error("a refused request carries a signature")
			}
		})
	}
}
