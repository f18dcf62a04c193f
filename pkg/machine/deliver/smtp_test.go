package deliver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// server is a mail server that answers each line of a client.
type server struct {
	answer func(line string) string
	dialed string
	tls    []string
	lines  []string
	out    bytes.Buffer
	in     string
	data   bool
	err    error // of Dial
}

func (s *server) Dial(_ context.Context, address string, timeout time.Duration) (proxydial.Conn, error) {
	if s.dialed = address; timeout == 0 {
		return nil, errors.New("no time limit")
	}
	s.out.WriteString(s.answer("CONNECT"))
	return s, s.err
}

func (s *server) Read(p []byte) (int, error) {
	if s.out.Len() == 0 {
		return 0, upstream.ErrTimeout
	}
	return s.out.Read(p)
}

func (s *server) Write(p []byte) (int, error) {
	s.in += string(p)
	for {
		end := "\r\n"
		if s.data {
			end = "\r\n.\r\n"
		}
		line, rest, ok := strings.Cut(s.in, end)
		if !ok {
			return len(p), nil
		}
		s.in, s.data = rest, false
		s.lines = append(s.lines, line)
		a := s.answer(line)
		s.data = strings.HasPrefix(a, "354")
		s.out.WriteString(a)
	}
}

func (s *server) Close() error { return nil }

func (s *server) StartTLS(host string) (io.ReadWriteCloser, error) {
	s.tls = append(s.tls, host)
	return s, nil
}

// polite answers as a server does that takes everything.
func polite(line string) string {
	switch verb, _, _ := strings.Cut(line, " "); verb {
	case "CONNECT":
		return "220-mx.example.com\r\n220 ready\r\n"
	case "EHLO":
		return "250-mx.example.com\r\n250-STARTTLS\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n"
	case "STARTTLS", "QUIT":
		return "220 go\r\n"
	case "AUTH":
		return "235 welcome\r\n"
	case "DATA":
		return "354 go on\r\n"
	}
	return "250 ok\r\n"
}

func sender(values ...string) *Opened {
	d := &Opened{MachineID: "demo", Values: map[string]secret.Secret{}, Now: noon}
	d.ID, d.Kind = "d1", "smtp"
	all := append([]string{"host", "mx.example.com", "port", "587", "user", "weir", "password", "canary-0123456789",
		"from", "Wéir, the gateway <weir@example.com>", "to", "a@example.com, b@example.com"}, values...)
	for i := 0; i < len(all); i += 2 {
		d.Values[all[i]] = secret.New(all[i+1])
	}
	return d
}

func send(t *testing.T, s *server, d *Opened, m Message) storage.Result {
	t.Helper()
	item := m.Item(d.ID)
	item.ID = "demo-7"
	return KindOf("smtp").Send(context.Background(), s, d, &item)
}

func TestMailIsSentOverTLS(t *testing.T) {
	for mode, wantTLS := range map[string]int{"starttls": 1, "tls": 1} {
		s := &server{answer: polite}
		if r := send(t, s, sender("tls", mode), messages["hostile"]); r.Verdict != storage.Delivered {
			t.Fatalf("%s: %+v after %q", mode, r, s.lines)
		}
		if len(s.tls) != wantTLS || s.tls[0] != "mx.example.com" || s.dialed != "mx.example.com:587" {
			t.Errorf("%s: TLS for %v at %s", mode, s.tls, s.dialed)
		}
		all := strings.Join(s.lines, "\n")
		auth := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00weir\x00canary-0123456789"))
		if !strings.Contains(all, auth) || !strings.Contains(all, "MAIL FROM:<weir@example.com>\nRCPT TO:<a@example.com>\nRCPT TO:<b@example.com>\nDATA\n") {
			t.Errorf("%s: said\n%s", mode, all)
		}
		if at := strings.Index(all, "STARTTLS"); mode == "starttls" && (at < 0 || at > strings.Index(all, "AUTH")) {
			t.Errorf("the password is sent before TLS")
		}
		raw := s.lines[len(s.lines)-2]
		if s.lines[len(s.lines)-1] != "QUIT" {
			raw = s.lines[len(s.lines)-1]
		}
		got, err := netmail.ReadMessage(strings.NewReader(raw + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		from, err := got.Header.AddressList("From")
		if err != nil || from[0].Name != "Wéir, the gateway" || got.Header.Get("Message-ID") != "<demo-7@example.com>" || got.Header.Get("Bcc") != "" {
			t.Errorf("the head is %v, %v", got.Header, err)
		}
		if at, err := got.Header.Date(); err != nil || !at.Equal(noon) {
			t.Errorf("the date is %v, %v", at, err)
		}
		body, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, got.Body))
		if err != nil || !strings.Contains(string(body), "<users/all> & \"q\"") {
			t.Errorf("the text is %q, %v", body, err)
		}
		for _, line := range strings.Split(raw, "\r\n") {
			if len(line) > 998 || strings.HasPrefix(line, ".") {
				t.Errorf("the line %.80q", line)
			}
		}
	}
}

func TestAnswersOfMailServers(t *testing.T) {
	refuse := func(verb, answer string) func(string) string {
		return func(line string) string {
			if strings.HasPrefix(line, verb) {
				return answer
			}
			return polite(line)
		}
	}
	for name, tt := range map[string]struct {
		server  *server
		verdict storage.Verdict
		why     string
	}{
		"busy":         {&server{answer: refuse("CONNECT", "421 later\r\n")}, storage.Again, "the mail server answered 421 later"},
		"wrong secret": {&server{answer: refuse("AUTH", "535 5.7.8 bad canary-0123456789\r\n")}, storage.Refused, "the mail server answered 535 5.7.8 bad ***"},
		"no recipient": {&server{answer: refuse("RCPT", "550 no such user\r\n")}, storage.Refused, "the mail server answered 550 no such user"},
		"greylisted":   {&server{answer: refuse("RCPT", "451-wait\r\n451 a while\r\n")}, storage.Again, "the mail server answered 451 wait a while"},
		"no TLS":       {&server{answer: refuse("STARTTLS", "502 what?\r\n")}, storage.Refused, "the mail server answered 502 what?"},
		"garbage":      {&server{answer: refuse("CONNECT", "\x00\xff\r\n")}, storage.Again, "the mail server answered 0"},
		"endless":      {&server{answer: refuse("EHLO", strings.Repeat("250-x\r\n", 1000))}, storage.Again, "not reachable"},
		"a long line":  {&server{answer: refuse("EHLO", strings.Repeat("x", 10_000)+"\r\n")}, storage.Again, "not reachable"},
		"silent":       {&server{answer: refuse("EHLO", "")}, storage.Again, "no answer in time"},
		"unreachable":  {&server{answer: polite, err: upstream.ErrNetwork}, storage.Again, "not reachable"},
		"no handshake": {&server{answer: polite, err: proxydial.ErrHandshake}, storage.Again, "the mail server has no valid TLS"},
		"knows LOGIN":  {&server{answer: login}, storage.Delivered, ""},
	} {
		r := send(t, tt.server, sender(), messages["plain"])
		if r.Verdict != tt.verdict || strings.TrimSpace(r.Why) != tt.why {
			t.Errorf("%s: got %+v, want %q", name, r, tt.why)
		}
	}
}

// login is a server that knows AUTH LOGIN alone.
func login(line string) string {
	switch {
	case strings.HasPrefix(line, "EHLO"):
		return "250-mx\r\n250 AUTH LOGIN XOAUTH2\r\n"
	case line == "AUTH LOGIN":
		return "334 VXNlcm5hbWU6\r\n"
	case line == base64.StdEncoding.EncodeToString([]byte("weir")):
		return "334 UGFzc3dvcmQ6\r\n"
	case line == base64.StdEncoding.EncodeToString([]byte("canary-0123456789")):
		return "235 ok\r\n"
	}
	return polite(line)
}

func TestMailServersStayOutsideThePrivateNetwork(t *testing.T) {
	for _, tt := range []struct {
		host, port, tls string
		private, ok     bool
	}{
		{"mx.example.com", "587", "", false, true}, {"mx.example.com", "465", "tls", false, true}, {"mx.example.com", "25", "none", false, false},
		{"mx.example.com", "22", "", false, false}, {"10.0.0.1", "587", "", false, false}, {"localhost", "25", "none", false, false},
		{"localhost", "25", "none", true, true}, {"169.254.169.254", "25", "none", true, false}, {"a.example.com/x", "25", "", true, false}, {"mx.example.com:25", "25", "", true, false},
		{"a b", "25", "", true, false}, {"mx.example.com\r\nQUIT", "25", "", true, false}, {"user@mx.example.com", "587", "", false, false},
	} {
		if err := (Policy{AllowPrivate: tt.private}).CheckServer(tt.host, tt.port, tt.tls); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
