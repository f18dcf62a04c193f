package deliver

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/pkg/credentials/sigv4"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const putTimeout = 30 * time.Second // an object may have a MiB

// s3 puts objects into a bucket of Amazon S3, Cloudflare R2 or another compatible store. An
// item's title is the name of its object, so that a repeat replaces what an earlier try
// has stored.
//
//	PUT {endpoint}/{bucket}/{prefix}/{title}   with the bucket in the host if style is virtual
//
// Source: Amazon S3 API Reference, "PutObject"; Cloudflare, "S3 API compatibility".
var s3 = Kind{
	Name: storage.LogKind, Takes: storage.Lines,
	Fields: []Field{
		{Name: "endpoint", Required: true, Address: true, Check: noQuery},
		{Name: "region", Required: true, Max: 40, Check: names("", "must be a region, such as eu-central-1 or auto")},
		{Name: "bucket", Required: true, Max: 63, Check: names("", "must be the name of a bucket")},
		{Name: "prefix", Check: names("/",
			"must be names of letters, digits, dots, dashes and underscores, with slashes between them")},
		{Name: "style", Values: []string{"path", "virtual"}},
		{Name: "accessKeyId", Required: true, Check: names("", "must be an access key id")},
		{Name: "secretAccessKey", Secret: true, Required: true},
		bodies,
	},
	Request: putObject,
	Judge:   judgeStore,
	Test: func(d *Opened) storage.Delivery {
		return storage.Delivery{Type: storage.Lines, Title: d.Now.UTC().Format("weir-test-20060102T150405Z.json"),
			Body: []byte(`{"test":true,"machine":"` + d.MachineID + `"}` + "\n")}
	},
}

func noQuery(value string) (wrong string) {
	if strings.ContainsAny(value, "?#") {
		wrong = "must have no query"
	}
	return wrong
}

// names returns a check that a value is one name of letters, digits, dots, dashes and
// underscores, or several with a separator between them. Such names need no encoding.
func names(separator, why string) func(string) string {
	return func(value string) string {
		all := []string{value}
		if separator != "" {
			all = strings.Split(value, separator)
		}
		for _, name := range all {
			if name == "" || strings.Trim(name, ".") == "" || strings.IndexFunc(name, special) >= 0 {
				return why
			}
		}
		return ""
	}
}

func special(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_')
}

func putObject(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
	url := strings.TrimRight(d.Value("endpoint"), "/")
	if d.Value("style") == "virtual" {
		scheme, rest, _ := strings.Cut(url, "://")
		url = scheme + "://" + d.Value("bucket") + "." + rest
	} else {
		url += "/" + d.Value("bucket")
	}
	if prefix := d.Value("prefix"); prefix != "" {
		url += "/" + prefix
	}
	url += "/" + strings.ReplaceAll(item.Title, "=", "%3D") // its other characters are unreserved
	url, _, err := d.Policy.Address(url)
	if err != nil {
		return nil, fmt.Errorf("the address %w", err)
	}
	kind := "application/gzip"
	if strings.HasSuffix(item.Title, ".json") {
		kind = "application/json"
	}
	sum := md5.Sum(item.Body) // stores without newer checksums verify it, and object lock asks for it
	req := &upstream.Request{
		Method: "PUT", URL: url, Body: stream.FromBytes(item.Body), Timeout: putTimeout,
		Header: httpmsg.Header{
			{Name: "content-type", Value: kind},
			{Name: "content-md5", Value: base64.StdEncoding.EncodeToString(sum[:])},
		},
	}
	keys := sigv4.Keys{AccessKeyID: d.Value("accessKeyId"), SecretAccessKey: d.Value("secretAccessKey")}
	if err := sigv4.Sign(req, keys, sigv4.Scope{Region: d.Value("region"), Service: "s3"}, d.Now); err != nil {
		return nil, errors.New("the access key or the region cannot be used for a signature")
	}
	return req, nil
}

// advice says what to do about a code of a store.
var advice = []struct{ code, text string }{
	{"AccessDenied", "the key may not write to this bucket; it needs s3:PutObject, of R2 “Object Read & Write”"},
	{"Unauthorized", "the access key is not known; create another one"},
	{"InvalidAccessKeyId", "the access key is not known to this store; check the endpoint and the key"},
	{"SignatureDoesNotMatch", "the secret access key is wrong, or the region"},
	{"NoSuchBucket", "there is no bucket of this name; check it, and the endpoint"},
	{"InvalidBucketName", "there is no bucket of this name; check it, and the endpoint"},
	{"PermanentRedirect", "the bucket is in another region; correct the region and the endpoint"},
	{"TemporaryRedirect", "the bucket was just created or is in another region"},
	{"AuthorizationHeaderMalformed", "the region is wrong"},
	{"RequestTimeTooSkewed", "the clock of the gateway is wrong"},
	{"SlowDown", "the store asks for fewer calls; it is tried again"},
	{"XMinioStorageFull", "the store is full"},
	{"QuotaExceeded", "the store is full"},
}

// judgeStore says what a store has answered. Whatever is wrong can be corrected by its
// owner, so lines wait until their outbox is full. A store answers a PUT without a body:
// one with a body is from something else.
func judgeStore(status int, body []byte, r storage.Result) storage.Result {
	body = bytes.TrimSpace(body)
	if r.Verdict == storage.Delivered && len(body) == 0 {
		return r
	}
	r.Verdict = storage.Again
	code := element(body, "Code")
	switch {
	case code == "" && status < 300:
		r.Why = fmt.Sprintf("status %d with a page: this is not the endpoint of an S3-compatible store", status)
		return r
	case code == "":
		return r
	}
	said := element(body, "Message")
	for _, a := range advice {
		if a.code == code {
			said = a.text
		}
	}
	if region := element(body, "Region"); region != "" {
		said += " (" + region + ")"
	} else if endpoint := element(body, "Endpoint"); endpoint != "" {
		said += " (" + endpoint + ")"
	}
	r.Why = fmt.Sprintf("status %d %s: %s", status, code, said)
	return r
}

// element returns the text of an element of an answer's XML, "" for none.
func element(body []byte, name string) string {
	_, rest, _ := bytes.Cut(body, []byte("<"+name+">"))
	text, _, found := bytes.Cut(rest, []byte("</"+name+">"))
	if !found || len(text) > 200 {
		return ""
	}
	return string(text)
}
