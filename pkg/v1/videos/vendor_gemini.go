package videos

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
)

// gemini is Veo on the Gemini API, a long-running operation:
//
//	POST models/{m}:predictLongRunning {instances[{prompt, image?, lastFrame?, referenceImages[{image, referenceType}]?}], parameters}
//	  → {name: "models/{m}/operations/…"}
//	GET {name} → {done, error?, response.generateVideoResponse.generatedSamples[].video.uri}
//
// Images are {bytesBase64Encoded, mimeType}; the finished video is given to the
// account only.
var gemini = shape{
	providers: []string{"gemini"},
	create:    createGemini,
	name:      field("name"),
	poll: func(name string, _ int, _ []byte) (*plan, error) {
		if !strings.Contains(name, "/operations/") {
			return nil, notFound()
		}
		return &plan{endpoint: "videoStatus", parts: []provider.Part{{Name: "operation", Value: name}}}, nil
	},
	read: readGemini,
}

// vertex is Veo on Vertex AI, whose operations are polled by another method.
// Without a bucket the finished video is in the answer itself.
//
//	POST models/{m}:predictLongRunning, as above → {name: "projects/…/models/{m}/operations/…"}
//	POST models/{m}:fetchPredictOperation {operationName} → {done, error?, response.videos[{bytesBase64Encoded, mimeType}]}
var vertex = shape{
	providers: []string{"vertex"}, large: true,
	create: createGemini,
	name:   field("name"),
	poll: func(name string, _ int, _ []byte) (*plan, error) {
		_, model, ok := strings.Cut(name, "/models/")
		model, _, more := strings.Cut(model, "/operations/")
		if !ok || !more {
			return nil, notFound()
		}
		body, err := json.Marshal(map[string]string{"operationName": name})
		return &plan{endpoint: "videoStatus", model: model, body: body}, err
	},
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		video := doc.Get("response.videos.0")
		if !doc.Get("done").Bool() || doc.Get("error").Exists() || !video.Exists() {
			return readGemini("", 0, body)
		}
		s := state{Status: "done", Progress: -1, mime: video.Get("mimeType").Str}
		if s.data = video.Get("bytesBase64Encoded").Str; s.data == "" {
			s.Status, s.Code, s.Message = "failed", "file_unavailable",
				"the provider stored the video in a bucket, not in its answer: "+video.Get("gcsUri").Str
		}
		return s, false
	},
}

func createGemini(in *input, model, _ string) (*plan, error) {
	instance, parameters := map[string]any{"prompt": in.prompt()}, map[string]any{}
	for _, name := range [...][2]string{{"image", "image"}, {"last_frame", "lastFrame"}} {
		a := in.address(name[0])
		if a == "" {
			continue
		}
		image, err := inline(name[0], a)
		if err != nil {
			return nil, err
		}
		instance[name[1]] = image
	}
	var references []any
	for _, a := range in.addresses("reference_images") {
		image, err := inline("reference_images", a)
		if err != nil {
			return nil, err
		}
		references = append(references, map[string]any{"image": image, "referenceType": "asset"})
	}
	if references != nil {
		instance["referenceImages"] = references
	}
	set(parameters, "durationSeconds", in.seconds())
	set(parameters, "aspectRatio", in.ratio())
	if resolution := in.resolution(); resolution == "480p" { // Veo has none so small
		in.noResolution()
	} else {
		set(parameters, "resolution", resolution)
	}
	set(parameters, "negativePrompt", in.text("negative_prompt"))
	set(parameters, "personGeneration", in.text("person_generation"))
	set(parameters, "seed", in.get("seed"))
	return write(generations, model, in, map[string]any{"instances": []any{instance}, "parameters": parameters})
}

// inline returns an image that is in the request itself.
func inline(param, address string) (any, error) {
	mime, data, ok := download.DataURI(address)
	if !ok {
		return nil, apierr.Invalid(param, "The provider of this model takes images as data: addresses only.")
	}
	return map[string]string{"bytesBase64Encoded": data, "mimeType": mime}, nil
}

func readGemini(_ string, _ int, body []byte) (state, bool) {
	doc := gjson.ParseBytes(body)
	s := state{Status: "pending", Progress: -1}
	video := doc.Get("response.generateVideoResponse")
	switch e := doc.Get("error"); {
	case !doc.Get("done").Bool():
	case e.Exists() && e.Type != gjson.Null:
		s.Status, s.Code, s.Message = "failed", strings.ToLower(e.Get("status").Str), e.Get("message").Str
		s.Code = cmp.Or(s.Code, textOf(e.Get("code")))
	case video.Get("generatedSamples.0.video.uri").Str != "":
		s.Status, s.private = "done", video.Get("generatedSamples.0.video.uri").Str
	default:
		s.Status, s.Message = "failed", video.Get("raiMediaFilteredReasons.0").Str
		s.Message = cmp.Or(s.Message, doc.Get("response.raiMediaFilteredReasons.0").Str)
		if s.Message != "" {
			s.Code = "content_policy"
		}
	}
	return s, false
}
