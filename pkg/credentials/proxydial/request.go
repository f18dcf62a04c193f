package proxydial

import (
	"fmt"
	"strconv"
	"strings"

	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// request returns the head and the body of a call. The connection serves this call
// alone.
func request(req *upstream.Request, host, port, target string) (head, body []byte, err error) {
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		body = b.All()
	default:
		return nil, nil, &Failure{What: "this kind of body cannot be sent through a proxy", Err: upstream.ErrNetwork}
	}
	if !isToken(req.Method) {
		return nil, nil, &Failure{What: "malformed method", Err: upstream.ErrNetwork}
	}
	if port != "443" {
		host += ":" + port
	}
	head = fmt.Appendf(make([]byte, 0, 512+len(body)), "%s %s HTTP/1.1\r\nhost: %s\r\n", req.Method, target, host)
	for _, f := range req.Header {
		if ownField(f.Name) {
			continue
		}
		if !isToken(f.Name) || !isFieldValue(f.Value) {
			return nil, nil, &Failure{What: "a header field cannot be sent", Err: upstream.ErrNetwork}
		}
		head = append(append(append(append(head, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if len(body) > 0 || req.Method == "POST" || req.Method == "PUT" || req.Method == "PATCH" {
		head = append(strconv.AppendInt(append(head, "content-length: "...), int64(len(body)), 10), "\r\n"...)
	}
	return append(head, "accept-encoding: identity\r\nconnection: close\r\n\r\n"...), body, nil
}

// ownField reports whether a field is this package's to set.
func ownField(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection", "accept-encoding", "keep-alive",
		"proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "expect":
		return true
	}
	return false
}

// isToken reports whether s is a token, RFC 9110 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether s has no control characters but tabs.
func isFieldValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
