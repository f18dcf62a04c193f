package models

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// InternalFetch marks a call for a model list that a gateway makes to build its
// own. A call that carries it, whatever its value, leads to no further one.
// See docs/reference/spec.md, 4.2.8.
const InternalFetch = "x-weir-internal-models-fetch"

const (
	fetchTimeout = 5 * time.Second // docs/reference/spec.md, 4.2.2, 8
	maxBody      = 4 << 20         // bytes of one list, inflated
	maxErrorBody = 64 << 10
	maxPages     = 5
)

// compatibleRequest asks a compatible provider for its list.
// See docs/reference/spec.md, 4.2.2 to 4.2.4 and 4.2.8.
func compatibleRequest(row *provider.Descriptor, conn *store.Connection, cred provider.Credential,
	timeout time.Duration) (*upstream.Request, error) {
	// The row judges the address; its own form of it may differ from
	// docs/reference/spec.md, 4.2.1 where more than one slash ends it.
	if _, _, err := row.Endpoint(conn, "models", ""); err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(strings.TrimSpace(conn.Data.BaseURL), "/") + "/models"
	if row.Dialect == llm.Messages {
		if base, ok := strings.CutSuffix(address, "/messages/models"); ok {
			address = base + "/models"
		} else if base, ok := strings.CutSuffix(address, "/messages"); ok {
			address = base + "/models"
		}
	}
	req := get(address, timeout)
	req.Header.Add("content-type", "application/json")
	req.Header.Add("cache-control", "no-cache")
	req.Header.Add(InternalFetch, "1")
	return req, provider.Authorize(&req.Header, row, conn, cred)
}

// rowRequest asks a provider of the table for a page of one of its lists.
func rowRequest(row *provider.Descriptor, conn *store.Connection, cred provider.Credential, endpoint string,
	query []string, timeout time.Duration) (*upstream.Request, error) {
	_, address, err := row.Endpoint(conn, endpoint, "")
	if err != nil {
		return nil, err
	}
	for _, q := range query {
		if q == "" {
			continue
		}
		if strings.Contains(address, "?") {
			address += "&" + q
		} else {
			address += "?" + q
		}
	}
	req := get(address, timeout)
	if conn.Data.BaseURL != "" {
		req.Header.Add(InternalFetch, "1") // it may be a gateway too
	}
	return req, provider.Authorize(&req.Header, row, conn, cred)
}

func get(address string, timeout time.Duration) *upstream.Request {
	return &upstream.Request{
		Method: "GET", URL: address, Header: httpmsg.Header{{Name: "accept", Value: "application/json"}},
		HeaderTimeout: timeout, Timeout: timeout, MaxBody: maxBody,
	}
}

// statusError is an answer outside 2xx.
type statusError int

func (e statusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// refused reports whether a fresh token may help. See docs/reference/spec.md,
// 4.3.4.
func refused(err error) bool {
	var s statusError
	return errors.As(err, &s) && (s == 401 || s == 403)
}

// answer returns the body of a 2xx answer.
func answer(resp *upstream.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if resp.Status < 200 || resp.Status > 299 {
		var body []byte
		if resp.Body != nil {
			body, _ = stream.ReadAll(resp.Body, maxErrorBody)
		}
		return nil, statusError(accounts.StatusOf(resp.Status, body))
	}
	body, err := stream.ReadAll(resp.Body, maxBody)
	if err != nil {
		return nil, fmt.Errorf("read the model list: %w", err)
	}
	return body, nil
}

// nextPage returns the query of the page after body, or "" if that page
// cannot be requested, and whether it exists. Pages that are named by a whole
// address are not followed.
func nextPage(l *provider.List, body []byte, page, read int) (query string, more bool) {
	if l.Next != "" {
		if more := gjson.GetBytes(body, "has_more"); more.Type == gjson.False {
			return "", false
		}
		next := gjson.GetBytes(body, l.Next).String()
		if next == "" || read == 0 {
			return "", false
		}
		if l.Token == "" {
			return "", true
		}
		return l.Token + "=" + url.QueryEscape(next), true
	}
	if l.Token == "" {
		return "", false
	}
	_, size, _ := strings.Cut(l.Size, "=")
	if n, err := strconv.Atoi(size); err != nil || read < n {
		return "", false
	}
	return l.Token + "=" + strconv.Itoa(page+1), true
}

// profiles is where Bedrock lists what can be called through an inference
// profile, which most current models need.
const profiles = "inferenceProfiles"

var profileList = provider.Descriptor{Models: provider.List{Array: "inferenceProfileSummaries",
	ID: "inferenceProfileId"}}

// withProfiles adds the profiles to the models and drops the models that only
// profiles can call.
func withProfiles(models []model, body []byte) []model {
	found, ok := readList(&profileList, body)
	if !ok {
		return models
	}
	filtered := models[:0]
	for _, m := range models {
		if !m.profileOnly {
			filtered = append(filtered, m)
		}
	}
	for _, p := range found {
		filtered = append(filtered, model{Model: catalog.Model{ID: p.ID}})
	}
	return filtered
}
