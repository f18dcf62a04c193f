package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// contentOf reads a content that is a text, or an array of parts.
func contentOf(pace *pacer, at string, v gjson.Result, part func(record) (block, error)) (blocks []block, err error) {
	switch {
	case v.Type == gjson.String:
		return []block{{text: v.Str}}, nil
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, apierr.Invalid(at+".content", "content must be a string or an array of parts.")
	}
	forEach(v, func(_, p gjson.Result) bool {
		var b block
		pace.did(pieceWork + len(p.Raw))
		b, err = part(recordOf(p))
		blocks = append(room(blocks, v), b)
		return err == nil
	})
	return blocks, err
}

// inputAudio reads the audio of a part: {data, format}.
func inputAudio(v gjson.Result) block {
	format := str(v.Get("format"))
	if format == "mp3" {
		format = "mpeg"
	}
	return block{kind: audioBlock, mime: "audio/" + format, data: str(v.Get("data"))}
}

// source takes an address or a data: URI apart.
func (b *block) source(at, uri string) error {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		if b.kind == documentBlock && uri != "" && !strings.Contains(uri, "://") {
			b.data, b.mime = uri, "application/pdf" // bare base64
			return nil
		}
		if uri == "" {
			return apierr.Invalid(at+".content", "A part has no data.")
		}
		b.url = uri
		return nil
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return apierr.Invalid(at+".content", "A data URI has no comma.")
	}
	mime, isBase64 := strings.CutSuffix(head, ";base64")
	if !isBase64 {
		return apierr.Invalid(at+".content", "A data URI must be base64.")
	}
	if i := strings.IndexByte(mime, ';'); i >= 0 {
		mime = mime[:i]
	}
	if mime == "image/jpg" {
		mime = "image/jpeg"
	}
	b.mime, b.data = mime, data
	return nil
}

// textsOf joins the field text of the elements of an array.
func textsOf(list gjson.Result, sep string) string {
	var j joined
	forEach(list, func(_, v gjson.Result) bool { j.add(sep, str(v.Get("text"))); return true })
	return j.text()
}
