package host

import (
	"net/http"
	"net/textproto"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
)

// class is a route class with the header fields that are read on it, each with
// its name in net/http.
type class struct {
	clientheader.Class
	below    []string // Paths, each with a slash
	fields   []field
	prefixes []string // as net/http writes names
}

type field struct{ name, canonical string }

var classes = routeClasses()

func routeClasses() (out []class) {
	for _, c := range clientheader.Classes() {
		r := class{Class: c}
		for _, p := range c.Paths {
			r.below = append(r.below, p+"/")
		}
		for _, f := range clientheader.Read(c.Routes) {
			canonical := textproto.CanonicalMIMEHeaderKey(f.Name)
			if strings.HasSuffix(f.Name, "-") {
				r.prefixes = append(r.prefixes, canonical)
			} else {
				r.fields = append(r.fields, field{f.Name, canonical})
			}
		}
		out = append(out, r)
	}
	return out
}

// classOf returns the route class of a path, as routeOf of worker/js/request.mjs
// does.
func classOf(path string) *class {
	path = withoutMachine(path)
	if strings.HasPrefix(path, "/v1/v1/") {
		path = path[3:]
	}
	for i := range classes {
		for _, p := range classes[i].Paths {
			if path == p {
				return &classes[i]
			}
		}
	}
	for i := range classes {
		for _, p := range classes[i].below {
			if strings.HasPrefix(path, p) {
				return &classes[i]
			}
		}
	}
	return &classes[len(classes)-1]
}

// machineID is the length of the id in a path that names a machine.
const machineID = 16

// withoutMachine returns a path without the machine id in front, if it has one.
func withoutMachine(path string) string {
	if len(path) < machineID+2 || path[machineID+1] != '/' || !rpc.IsMachineID(path[1:machineID+1]) {
		return path
	}
	if rest := path[machineID+1:]; strings.HasPrefix(rest, "/v1/") || strings.HasPrefix(rest, "/api/") ||
		strings.HasPrefix(rest, "/v1beta/") || strings.HasPrefix(rest, "/v1alpha/") {
		return rest
	}
	return path
}

// request returns the part of a request that the program receives, without its
// body. It reports false if the address is invalid.
func (h *Host) request(hr *http.Request) (*httpmsg.Request, bool) {
	r := &httpmsg.Request{Method: hr.Method, Origin: h.Origin(hr), Length: hr.ContentLength, Start: h.Now()}
	target := hr.RequestURI
	if !strings.HasPrefix(target, "/") { // absolute form (RFC 9112, 3.2.2), or that of CONNECT and OPTIONS
		if target = hr.URL.EscapedPath(); hr.URL.RawQuery != "" {
			target += "?" + hr.URL.RawQuery
		}
		if !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
	}
	var ok bool
	r.Path, r.Query, ok = requestPath(target)
	if !ok {
		r.Path, r.Query = "/", ""
	}
	h.header(r, hr)
	return r, ok
}

// header adds the header fields of the route class.
func (h *Host) header(r *httpmsg.Request, hr *http.Request) {
	c := classOf(r.Path)
	r.Header = make(httpmsg.Header, 0, 8)
	key := false // a key in Authorization decides if there are two
	for _, f := range c.fields {
		switch f.name {
		case "x-api-key":
			if key {
				continue
			}
		case "cf-connecting-ip": // never a client's own word
			if a := h.ClientAddress(hr); a != "" {
				r.Header.Add(f.name, a)
			}
			continue
		case "cf-ipcountry": // as little
			continue
		}
		values := hr.Header[f.canonical]
		if len(values) == 0 {
			continue
		}
		value := values[0]
		if len(values) > 1 {
			value = strings.Join(values, ", ")
		}
		r.Header.Add(f.name, value)
		if f.name == "authorization" && len(c.prefixes) == 0 {
			key = strings.Contains(value, " ")
		}
	}
	if len(c.prefixes) == 0 {
		return
	}
	for name, values := range hr.Header {
		for _, p := range c.prefixes {
			if strings.HasPrefix(name, p) {
				r.Header.Add(strings.ToLower(name), strings.Join(values, ", "))
				break
			}
		}
	}
}

// maxHead is the limit of the edge platform for the part of a request's head that
// the program receives, in bytes of UTF-8.
const maxHead = 96 << 10

// size returns the length of a head as the edge platform counts it.
func size(r *httpmsg.Request) int {
	n := len(r.Method) + len(r.Origin) + len(r.Path) + len(r.Query) + 2
	for _, f := range r.Header {
		n += len(f.Name) + len(f.Value) + 2
	}
	if n <= maxHead/2 {
		return n
	}
	for _, f := range r.Header { // each byte over 0x7f is a character of two bytes there
		for i := 0; i < len(f.Value); i++ {
			n += int(f.Value[i] >> 7)
		}
	}
	return n
}
