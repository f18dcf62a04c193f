package deliver

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/wire/upstream"
)

const smtpTimeout = 20 * time.Second

// smtp sends an e-mail to a server (RFC 5321), over the platform's sockets.
var smtp = Kind{
	Name: "smtp", Takes: storage.Notification,
	Fields: notification(
		Field{Name: "host", Required: true, Place: true, Max: 253},
		Field{Name: "port", Required: true, Check: number(1, 65535)},
		Field{Name: "tls", Values: []string{"starttls", "tls", "none"}},
		Field{Name: "user", Check: headerSafe}, Field{Name: "password", Secret: true, Max: 500, Check: headerSafe},
		Field{Name: "from", Required: true, Check: oneAddress}, Field{Name: "to", Required: true, Max: 1000, Check: addresses}),
	Check: func(v map[string]string) (field, why string) {
		if v["tls"] == "none" && v["user"] != "" {
			return "tls", "must not be none with a user: the password would be sent unencrypted"
		}
		return "", ""
	},
	Send: sendSMTP,
}

// CheckServer judges the server of an e-mail destination as Address does. Mail servers on
// the local network may have any port and need no TLS.
func (p Policy) CheckServer(host, port, tls string) error {
	if strings.ContainsAny(host, "/:") {
		return errors.New("must be a host name without a port")
	}
	if err := provider.CheckBaseURL("https://"+host, p.AllowPrivate, p.OwnHosts...); err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		return fmt.Errorf("is refused: %s", why)
	}
	if p.AllowPrivate {
		return nil
	}
	if !slices.Contains([]string{"25", "465", "587", "2525"}, port) {
		return errors.New("is refused: the port must be 25, 465, 587 or 2525")
	}
	if tls == "none" {
		return errors.New("is refused: it must be reached by TLS")
	}
	return nil
}

// reply is a refusal by a mail server.
type reply struct {
	code int
	text string
}

func (r *reply) Error() string { return fmt.Sprintf("the mail server answered %d %s", r.code, r.text) }

func sendSMTP(ctx context.Context, dialer proxydial.Dialer, d *Opened, item *storage.Delivery) storage.Result {
	m, err := d.mail(item)
	host, port := d.Value("host"), d.Value("port")
	if err == nil {
		err = d.Policy.CheckServer(host, port, d.Value("tls"))
	}
	if err != nil {
		return storage.Result{Verdict: storage.Refused, Why: "the server " + err.Error()}
	}
	if dialer == nil {
		return storage.Result{Verdict: storage.Refused, Why: "not available on this platform"}
	}
	err = m.send(ctx, dialer, d)
	var refused *reply
	switch {
	case err == nil:
		return storage.Result{}
	case errors.As(err, &refused) && refused.code >= 500:
		return storage.Result{Verdict: storage.Refused, Why: d.hide(refused.Error())}
	case errors.As(err, &refused):
		return storage.Result{Verdict: storage.Again, Why: d.hide(refused.Error())}
	case errors.Is(err, upstream.ErrTimeout):
		return storage.Result{Verdict: storage.Again, Why: "no answer in time"}
	case errors.Is(err, proxydial.ErrHandshake):
		return storage.Result{Verdict: storage.Again, Why: "the mail server has no valid TLS"}
	}
	return storage.Result{Verdict: storage.Again, Why: "not reachable"}
}

// session is a connection to a mail server.
type session struct {
	io.ReadWriteCloser
	lines *bufio.Reader
}

func (s *session) on(c io.ReadWriteCloser) {
	s.ReadWriteCloser, s.lines = c, bufio.NewReaderSize(c, 2048)
}

const maxReplyLines = 50

// cmd sends a line, "" for none, and reads the reply, whose code must be want.
func (s *session) cmd(want int, line string) (text string, err error) {
	if line != "" {
		if _, err := io.WriteString(s, line+"\r\n"); err != nil {
			return "", err
		}
	}
	for range maxReplyLines {
		raw, err := s.lines.ReadSlice('\n')
		if err != nil {
			return "", fmt.Errorf("read a reply: %w", err)
		}
		l := strings.TrimRight(string(raw), "\r\n")
		code, _ := strconv.Atoi(l[:min(3, len(l))])
		text += l[min(4, len(l)):] + "\n"
		if len(l) > 3 && l[3] == '-' {
			continue
		}
		if code/10 != want/10 {
			return "", &reply{code, Plain(text, 150)}
		}
		return text, nil
	}
	return "", errors.New("the reply is too long")
}

// send sends the e-mail. The server may have taken it even if an error is returned: a repeat
// has the same message id.
func (m *mail) send(ctx context.Context, dialer proxydial.Dialer, d *Opened) error {
	host := d.Value("host")
	conn, err := dialer.Dial(ctx, host+":"+d.Value("port"), smtpTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &session{}
	s.on(conn)
	secure := func() error {
		c, err := conn.StartTLS(host)
		if err == nil {
			s.on(c)
		}
		return err
	}
	if d.Value("tls") == "tls" {
		if err := secure(); err != nil {
			return err
		}
	}
	if _, err := s.cmd(220, ""); err != nil {
		return err
	}
	_, domain, _ := strings.Cut(m.from, "@")
	can, err := s.cmd(250, "EHLO "+domain)
	if mode := d.Value("tls"); err == nil && (mode == "" || mode == "starttls") {
		if _, err = s.cmd(220, "STARTTLS"); err == nil {
			err = secure()
		}
		if err == nil {
			can, err = s.cmd(250, "EHLO "+domain)
		}
	}
	if err == nil && d.Value("user") != "" {
		err = s.login(can, d.Value("user"), d.Value("password"))
	}
	if err != nil {
		return err
	}
	return s.transfer(m, d.Now)
}

// login proves who the sender is by what the server can: PLAIN, else LOGIN.
func (s *session) login(can, user, password string) error {
	b64 := base64.StdEncoding.EncodeToString
	methods := ""
	for _, line := range strings.Split(strings.ToUpper(can), "\n") {
		if rest, ok := strings.CutPrefix(line, "AUTH"); ok {
			methods += rest
		}
	}
	if strings.Contains(methods, "LOGIN") && !strings.Contains(methods, "PLAIN") {
		_, err := s.cmd(334, "AUTH LOGIN")
		if err == nil {
			_, err = s.cmd(334, b64([]byte(user)))
		}
		if err == nil {
			_, err = s.cmd(235, b64([]byte(password)))
		}
		return err
	}
	_, err := s.cmd(235, "AUTH PLAIN "+b64([]byte("\x00"+user+"\x00"+password)))
	return err
}

func (s *session) transfer(m *mail, now time.Time) error {
	if _, err := s.cmd(250, "MAIL FROM:<"+m.from+">"); err != nil {
		return err
	}
	for _, to := range m.to {
		if _, err := s.cmd(250, "RCPT TO:<"+to+">"); err != nil {
			return err
		}
	}
	if _, err := s.cmd(354, "DATA"); err != nil {
		return err
	}
	if _, err := s.cmd(250, m.mime(now)+"."); err != nil {
		return err
	}
	io.WriteString(s, "QUIT\r\n") // the message is taken, whatever the answer
	return nil
}

// mime returns the e-mail in its Internet format. No line of it begins with a dot.
func (m *mail) mime(now time.Time) string {
	from := "<" + m.from + ">"
	if m.fromName != "" {
		from = encodedWords(m.fromName) + " " + from
	}
	_, domain, _ := strings.Cut(m.from, "@")
	var b strings.Builder
	for _, h := range [...][2]string{
		{"From", from}, {"To", strings.Join(m.to, ", ")}, {"Subject", encodedWords(m.subject)},
		{"Date", now.UTC().Format("Mon, 02 Jan 2006 15:04:05 +0000")}, {"Message-ID", "<" + m.id + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "base64"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	for text := base64.StdEncoding.EncodeToString([]byte(m.text)); text != ""; {
		n := min(76, len(text))
		b.WriteString(text[:n] + "\r\n")
		text = text[n:]
	}
	return b.String()
}

// encodedWords returns a text for a header as encoded words (RFC 2047).
func encodedWords(s string) string {
	var out []string
	for s != "" {
		n := min(45, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		out = append(out, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(out, "\r\n ")
}
