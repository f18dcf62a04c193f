package deliver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// mail is an e-mail of a notification.
type mail struct {
	from, fromName string
	to             []string
	subject, text  string
	id             string
}

// mailServices are the HTTP APIs that send e-mail.
var mailServices = [...]struct {
	name    string
	request func(d *Opened, m *mail) *upstream.Request
}{
	// https://resend.com/docs/api-reference/emails/send-email
	{"resend", func(d *Opened, m *mail) *upstream.Request {
		return post("https://api.resend.com/emails", storage.Encode(object{"from": m.sender(), "to": m.to,
			"subject": m.subject, "text": m.text}), bearer(d.Value("token")),
			httpmsg.Field{Name: "idempotency-key", Value: m.id})
	}},
	// https://postmarkapp.com/developer/api/email-api
	{"postmark", func(d *Opened, m *mail) *upstream.Request {
		return post("https://api.postmarkapp.com/email", storage.Encode(object{"From": m.sender(),
			"To": strings.Join(m.to, ","), "Subject": m.subject, "TextBody": m.text}),
			httpmsg.Field{Name: "x-postmark-server-token", Value: d.Value("token")},
			httpmsg.Field{Name: "accept", Value: "application/json"})
	}},
	// https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send
	{"sendgrid", func(d *Opened, m *mail) *upstream.Request {
		var to []object
		for _, a := range m.to {
			to = append(to, object{"email": a})
		}
		from := object{"email": m.from}
		if m.fromName != "" {
			from["name"] = m.fromName
		}
		return post("https://api.sendgrid.com/v3/mail/send", storage.Encode(object{
			"personalizations": []object{{"to": to}}, "from": from, "subject": m.subject,
			"content": []object{{"type": "text/plain", "value": m.text}}}), bearer(d.Value("token")))
	}},
	// https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages
	{"mailgun", func(d *Opened, m *mail) *upstream.Request {
		host := "api.mailgun.net"
		if d.Value("region") == "eu" {
			host = "api.eu.mailgun.net"
		}
		form := url.Values{"from": {m.sender()}, "to": m.to, "subject": {m.subject}, "text": {m.text}}
		return &upstream.Request{URL: "https://" + host + "/v3/" + d.Value("domain") + "/messages",
			Body: stream.FromString(form.Encode()), Header: httpmsg.Header{
				{Name: "content-type", Value: "application/x-www-form-urlencoded"}, basic("api", d.Value("token"))}}
	}},
}

// email sends through the HTTP API of a service.
var email = Kind{
	Name: "email", Takes: storage.Notification,
	Fields: notification(
		Field{Name: "service", Required: true, Place: true, Values: serviceNames()},
		Field{Name: "token", Secret: true, Required: true, Max: 500, Check: headerSafe},
		Field{Name: "from", Required: true, Check: oneAddress}, Field{Name: "to", Required: true, Max: 1000, Check: addresses},
		Field{Name: "domain", Check: domainName}, Field{Name: "region", Values: []string{"us", "eu"}}),
	Check: func(v map[string]string) (field, why string) {
		if v["service"] == "mailgun" && v["domain"] == "" {
			return "domain", "is required for Mailgun"
		}
		return "", ""
	},
	Request: func(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
		m, err := d.mail(item)
		if err != nil {
			return nil, err
		}
		for i := range mailServices {
			if mailServices[i].name == d.Value("service") {
				return mailServices[i].request(d, &m), nil
			}
		}
		return nil, fmt.Errorf("the service %q is not known to this version", d.Value("service"))
	},
}

func serviceNames() (names []string) {
	for i := range mailServices {
		names = append(names, mailServices[i].name)
	}
	return names
}

// mail returns the e-mail of an item.
func (d *Opened) mail(item *storage.Delivery) (mail, error) {
	m, err := ReadMessage(item)
	text := Lines(m.Text, 10_000)
	if m.Link != "" {
		text += "\n\n" + m.Link
	}
	name, from := splitAddress(d.Value("from"))
	return mail{from: from, fromName: name, to: splitAddresses(d.Value("to")),
		subject: "[weir] " + Plain(m.Title, 150), text: text + "\n", id: item.ID}, err
}

// sender returns the address of the sender with its name.
func (m *mail) sender() string {
	if m.fromName == "" {
		return m.from
	}
	return `"` + strings.NewReplacer(`\`, "", `"`, "").Replace(m.fromName) + `" <` + m.from + ">"
}

// splitAddress splits "Name <address>".
func splitAddress(s string) (name, address string) {
	s = strings.TrimSpace(s)
	if head, rest, ok := strings.Cut(s, "<"); ok && strings.HasSuffix(rest, ">") {
		return strings.Trim(strings.TrimSpace(head), `"`), strings.TrimSuffix(rest, ">")
	}
	return "", s
}

func splitAddresses(s string) (list []string) {
	for _, a := range strings.Split(s, ",") {
		list = append(list, strings.TrimSpace(a))
	}
	return list
}

// isAddress reports whether s is an e-mail address in the form that servers take
// unquoted.
func isAddress(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	bad := strings.ContainsFunc(local, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>@[\]`, r)
	})
	return ok && local != "" && !bad && len(s) <= 254 && domainName(domain) == ""
}

func oneAddress(v string) string {
	if _, a := splitAddress(v); !isAddress(a) {
		return "must be an e-mail address, or Name <address>"
	}
	return ""
}

func addresses(v string) string {
	list := splitAddresses(v)
	if len(list) > 10 || slices.ContainsFunc(list, func(a string) bool { return !isAddress(a) }) {
		return "must be up to 10 e-mail addresses, separated by commas"
	}
	return ""
}

func domainName(v string) string {
	labels := strings.Split(v, ".")
	for _, l := range labels {
		bad := strings.ContainsFunc(l, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
		})
		if bad || l == "" || len(l) > 63 || len(labels) < 2 || len(v) > 253 {
			return "must be a domain"
		}
	}
	return ""
}
