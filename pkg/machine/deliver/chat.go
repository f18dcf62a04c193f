package deliver

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

type object = map[string]any

// notification returns the fields of a kind of notifications, with those that all have.
func notification(fields ...Field) []Field {
	return append(fields,
		Field{Name: "coolingMinutes", Check: number(1, 10080)},
		Field{Name: "errorPercent", Check: number(1, 100)},
		Field{Name: "quietHours", Check: func(v string) string {
			if _, _, ok := QuietHours(v); !ok {
				return "must be two times such as 22:00-07:00"
			}
			return ""
		}})
}

func number(least, most int) func(string) string {
	return func(v string) string {
		if n, err := strconv.Atoi(v); err != nil || n < least || n > most {
			return "must be an integer from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
		}
		return ""
	}
}

// address is the field of the URL that a vendor has issued for a channel.
var address = Field{Name: "url", Secret: true, Required: true, Max: 2000, Address: true}

// chat returns a kind that posts JSON to an address of a vendor.
func chat(name string, body func(m *Message) object) Kind {
	return Kind{Name: name, Takes: storage.Notification, Fields: notification(address),
		Request: func(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
			m, err := ReadMessage(item)
			if err != nil {
				return nil, err
			}
			return post(d.Value("url"), storage.Encode(body(&m))), nil
		}}
}

// open is the text of a link to the dashboard.
const open = "Open the dashboard"

// slack posts to an incoming webhook: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
// A section has at most 3,000 characters, of which an escape counts up to 5.
var slack = chat("slack", func(m *Message) object {
	text := "*" + escapeSlack(Plain(m.Title, 200)) + "*\n" + escapeSlack(Lines(m.Text, 2000))
	if len([]rune(text)) > 2900 {
		text = "*" + escapeSlack(Plain(m.Title, 200)) + "*\n" + escapeSlack(Lines(m.Text, 380))
	}
	blocks := []object{{"type": "section", "text": object{"type": "mrkdwn", "verbatim": true, "text": text}}}
	if m.Link != "" {
		blocks = append(blocks, object{"type": "context", "elements": []object{{"type": "mrkdwn", "verbatim": true,
			"text": "<" + escapeSlack(m.Link) + "|" + open + ">"}}})
	}
	return object{"text": escapeSlack(Plain(m.Title, 200)), "blocks": blocks, "unfurl_links": false}
})

// escapeSlack escapes the three characters that begin a mention, a link or an entity.
func escapeSlack(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// colors are those of a level.
var colors = map[string]int{Bad: 0xd92d20, Warn: 0xf79009, Good: 0x12b76a}

// discord posts to a webhook: https://discord.com/developers/docs/resources/webhook
// An embed has a title of at most 256 characters and a description of 4,096. Mentions are
// not resolved.
var discord = func() Kind {
	k := chat("discord", func(m *Message) object {
		embed := object{"title": escapeMarkdown(Plain(m.Title, 120)), "description": escapeMarkdown(Lines(m.Text, 2000)),
			"timestamp": time.UnixMilli(m.At).UTC().Format(time.RFC3339)}
		if color, ok := colors[m.Level]; ok {
			embed["color"] = color
		}
		if m.Link != "" {
			embed["url"] = m.Link
		}
		return object{"embeds": []object{embed}, "allowed_mentions": object{"parse": []string{}}}
	})
	k.Judge = func(status int, body []byte, r storage.Result) storage.Result {
		if n := gjson.GetBytes(body, "retry_after").Num; status == 429 && n > 0 && n < 24*3600 {
			r.After = max(r.After, int64(n*1000))
		}
		return r
	}
	return k
}()

// escapeMarkdown escapes the characters with a meaning in Markdown.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\*_~`|<>[]()#@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// teams posts an adaptive card to the URL of a workflow. Text runs have no Markdown. A
// message has at most 28 KB.
var teams = chat("teams", func(m *Message) object {
	run := func(text string, more object) object {
		more["type"], more["text"] = "TextRun", text
		return object{"type": "RichTextBlock", "inlines": []object{more}}
	}
	card := object{"type": "AdaptiveCard", "version": "1.4", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
		"body": []object{run(Plain(m.Title, 200), object{"weight": "Bolder", "size": "Medium"}), run(Lines(m.Text, 4000), object{})}}
	if m.Link != "" {
		card["actions"] = []object{{"type": "Action.OpenUrl", "title": open, "url": m.Link}}
	}
	return object{"type": "message", "attachments": []object{
		{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
})

// googleChat posts a card to a webhook of a space:
// https://developers.google.com/workspace/chat/quickstart/webhooks
// A card has at most 32 KB. Its paragraphs are a subset of HTML.
var googleChat = chat("google-chat", func(m *Message) object {
	widgets := []object{{"textParagraph": object{"text": escapeHTML(Lines(m.Text, 4000))}}}
	if m.Link != "" {
		widgets = append(widgets, object{"buttonList": object{"buttons": []object{
			{"text": open, "onClick": object{"openLink": object{"url": m.Link}}}}}})
	}
	return object{"fallbackText": Plain(m.Title, 200), "cardsV2": []object{{"cardId": "weir", "card": object{
		"header": object{"title": Plain(m.Title, 200)}, "sections": []object{{"widgets": widgets}}}}}}
})

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", "<br>").Replace(s)
}

// ntfy publishes to a topic, whose URL is the address: https://docs.ntfy.sh/publish/#publish-as-json
// A longer message than 4,096 bytes would become an attachment.
var ntfy = Kind{
	Name: "ntfy", Takes: storage.Notification,
	Fields: notification(
		Field{Name: "url", Secret: true, Required: true, Max: 2000, Address: true, Check: func(v string) string {
			if root, topic := cutTopic(v); topic == "" || root == "https://" || root == "http://" {
				return "must be the address of a topic, such as https://ntfy.sh/my-topic"
			}
			return ""
		}},
		Field{Name: "token", Secret: true, Max: 500, Check: headerSafe}),
	Request: func(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
		m, err := ReadMessage(item)
		if err != nil {
			return nil, err
		}
		root, topic := cutTopic(d.Value("url"))
		body := object{"topic": topic, "title": Plain(m.Title, 100), "message": Lines(m.Text, 1000), "priority": 3}
		if m.Level == Bad {
			body["priority"] = 4
		}
		if tag := map[string]string{Bad: "rotating_light", Warn: "warning", Good: "white_check_mark"}[m.Level]; tag != "" {
			body["tags"] = []string{tag}
		}
		if m.Link != "" {
			body["click"] = m.Link
		}
		req := post(root, storage.Encode(body))
		if d.Value("token") != "" {
			req.Header = append(req.Header, bearer(d.Value("token")))
		}
		return req, nil
	},
}

// cutTopic splits the URL of a topic into that of its server and its name.
func cutTopic(url string) (root, topic string) {
	url, query, has := strings.Cut(url, "?")
	url = strings.TrimSuffix(url, "/")
	i := strings.LastIndexByte(url, '/')
	if root, topic = url[:i+1], url[i+1:]; has {
		root += "?" + query
	}
	return root, topic
}

func bearer(token string) httpmsg.Field {
	return httpmsg.Field{Name: "authorization", Value: "Bearer " + token}
}

func basic(user, password string) httpmsg.Field {
	return httpmsg.Field{Name: "authorization",
		Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// headerSafe refuses what cannot be sent in a header field.
func headerSafe(v string) string {
	for i := 0; i < len(v); i++ {
		if v[i] <= ' ' || v[i] >= 0x7f {
			return "has characters that cannot be sent in a header"
		}
	}
	return ""
}
