package deliver

import (
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// store returns an opened destination of a bucket.
func store(values map[string]string) *Opened {
	d := &Opened{Destination: storage.Destination{ID: "d1", Kind: "s3"}, Values: map[string]secret.Secret{},
		Now: time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC)}
	for name, v := range map[string]string{"endpoint": "https://s3.eu-central-1.amazonaws.com", "region": "eu-central-1",
		"bucket": "logs", "accessKeyId": "AKIAIOSFODNN7EXAMPLE",
		"secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"} {
		d.Values[name] = secret.New(v)
	}
	for name, v := range values {
		d.Values[name] = secret.New(v)
	}
	return d
}

func TestObjectsAreAddressedByTheStyleOfTheStore(t *testing.T) {
	item := &storage.Delivery{Title: "machine=m1/date=2026-11-28/hour=01/1-2-ab.jsonl.gz", Body: []byte("x")}
	const name = "machine%3Dm1/date%3D2026-11-28/hour%3D01/1-2-ab.jsonl.gz"
	for _, tt := range []struct {
		values map[string]string
		want   string
	}{
		{nil, "https://s3.eu-central-1.amazonaws.com/logs/" + name},
		{map[string]string{"style": "virtual", "prefix": "a/b"}, "https://logs.s3.eu-central-1.amazonaws.com/a/b/" + name},
		{map[string]string{"endpoint": "https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/", "region": "auto", "style": "path"},
			"https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/logs/" + name},
		{map[string]string{"endpoint": "https://project.example.com/storage/v1/s3"},
			"https://project.example.com/storage/v1/s3/logs/" + name},
	} {
		d := store(tt.values)
		req, err := d.RequestOf(item)
		if err != nil {
			t.Fatal(err)
		}
		if req.URL != tt.want || req.Method != "PUT" {
			t.Errorf("%s %s, want %s", req.Method, req.URL, tt.want)
		}
		for _, field := range []string{"authorization", "x-amz-content-sha256", "content-md5"} {
			if req.Header.Get(field) == "" {
				t.Errorf("no %s", field)
			}
		}
		if region := d.Value("region"); !strings.Contains(req.Header.Get("authorization"), "/"+region+"/s3/aws4_request") {
			t.Errorf("authorization %q", req.Header.Get("authorization"))
		}
	}
	if _, err := store(map[string]string{"endpoint": "https://10.0.0.1"}).RequestOf(item); err == nil {
		t.Error("a private address is called")
	}
	if _, err := store(map[string]string{"endpoint": "https://example.com", "bucket": "x", "style": "virtual"}).RequestOf(item); err != nil {
		t.Error(err)
	}
}

func TestAnswersOfStoresAreExplained(t *testing.T) {
	xml := func(code, more string) string {
		return `<?xml version="1.0"?><Error><Code>` + code + `</Code><Message>Said by the store</Message>` + more + `</Error>`
	}
	for _, tt := range []struct {
		status  int
		body    string
		verdict storage.Verdict
		why     string
	}{
		{200, "", storage.Delivered, ""},
		{200, " \n", storage.Delivered, ""},
		{200, "<html>Welcome</html>", storage.Again,
			"status 200 with a page: this is not the endpoint of an S3-compatible store"},
		{403, xml("AccessDenied", ""), storage.Again,
			"status 403 AccessDenied: the key may not write to this bucket; it needs s3:PutObject, of R2 “Object Read & Write”"},
		{403, xml("SignatureDoesNotMatch", ""), storage.Again,
			"status 403 SignatureDoesNotMatch: the secret access key is wrong, or the region"},
		{404, xml("NoSuchBucket", ""), storage.Again,
			"status 404 NoSuchBucket: there is no bucket of this name; check it, and the endpoint"},
		{301, xml("PermanentRedirect", "<Endpoint>logs.s3.eu-west-1.amazonaws.com</Endpoint>"), storage.Again,
			"status 301 PermanentRedirect: the bucket is in another region; correct the region and the endpoint (logs.s3.eu-west-1.amazonaws.com)"},
		{400, xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"), storage.Again,
			"status 400 AuthorizationHeaderMalformed: the region is wrong (eu-west-1)"},
		{503, xml("SlowDown", ""), storage.Again, "status 503 SlowDown: the store asks for fewer calls; it is tried again"},
		{400, xml("SomethingNew", ""), storage.Again, "status 400 SomethingNew: Said by the store"},
		{410, "", storage.Again, "status 410: the address no longer exists"},
		{200, xml("InternalError", ""), storage.Again, "status 200 InternalError: Said by the store"},
		{500, "<Code>" + strings.Repeat("x", 5000), storage.Again, "status 500"},
	} {
		d := store(nil)
		got := d.Judge(&upstream.Response{Status: tt.status, Body: stream.FromString(tt.body)}, nil)
		if got.Verdict != tt.verdict || got.Why != tt.why {
			t.Errorf("%d %s: %v %q, want %q", tt.status, tt.body, got.Verdict, got.Why, tt.why)
		}
	}
}

func TestNamesOfBucketsAndPrefixesAreRefusedIfTheyNeedEncoding(t *testing.T) {
	check := map[string]func(string) string{}
	for _, f := range KindOf("s3").Fields {
		check[f.Name] = f.Check
	}
	for _, tt := range []struct {
		field, value string
		ok           bool
	}{
		{"bucket", "weir-logs.example", true}, {"bucket", "a/b", false}, {"bucket", "..", false}, {"bucket", "a b", false},
		{"prefix", "team/weir_logs", true}, {"prefix", "a/../b", false}, {"prefix", "a//b", false}, {"prefix", "/a", false},
		{"prefix", "ä", false}, {"prefix", "a%2fb", false}, {"prefix", "a?b", false},
		{"region", "auto", true}, {"region", "eu central", false}, {"endpoint", "https://h/?x=1", false},
	} {
		if why := check[tt.field](tt.value); (why == "") != tt.ok {
			t.Errorf("%s %q: %q", tt.field, tt.value, why)
		}
	}
}
