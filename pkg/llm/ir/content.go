package ir

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// ReadContent reads a content: a string, or an array of parts.
func ReadContent(pace *Pacer, at string, v gjson.Result, part func(Record) (Block, error)) (blocks []Block, err error) {
	switch {
	case v.Type == gjson.String:
		return []Block{{Text: v.Str}}, nil
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, apierr.Invalid(at+".content", "content must be a string or an array of parts.")
	}
	Each(v, func(_, p gjson.Result) bool {
		var b Block
		pace.Work(PieceWork + len(p.Raw))
		b, err = part(RecordOf(p))
		blocks = append(Reserve(blocks, v), b)
		return err == nil
	})
	return blocks, err
}

// ReadAudio reads the audio of a part: {data, format}.
func ReadAudio(v gjson.Result) Block {
	format := Str(v.Get("format"))
	if format == "mp3" {
		format = "mpeg"
	}
	return Block{Kind: AudioBlock, MediaType: "audio/" + format, Data: Str(v.Get("data"))}
}

// SetSource sets the URL of a block, or the data of a data: URI.
func (b *Block) SetSource(at, uri string) error {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		if b.Kind == DocumentBlock && uri != "" && !strings.Contains(uri, "://") {
			b.Data, b.MediaType = uri, "application/pdf" // bare base64
			return nil
		}
		if uri == "" {
			return apierr.Invalid(at+".content", "A part has no data.")
		}
		b.URL = uri
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
	b.MediaType, b.Data = mime, data
	return nil
}

// JoinTextFields joins the members text of the elements of an array.
func JoinTextFields(list gjson.Result, sep string) string {
	var j Joiner
	Each(list, func(_, v gjson.Result) bool { j.Add(sep, Str(v.Get("text"))); return true })
	return j.Text()
}
