package videos

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// together is Together's v2 API:
//
//	POST /v2/videos {model, prompt, seconds "5", width, height, frame_images[{input_image, frame}], reference_images[]} → {id}
//	GET /v2/videos/{id} → {status in_progress|completed|failed, outputs.video_url, error}
var together = shape{
	providers: []string{"together"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"model": model, "prompt": in.prompt()}
		if seconds := in.seconds(); seconds > 0 {
			body["seconds"] = strconv.FormatInt(seconds, 10)
		}
		w, h := in.pixels()
		set(body, "width", w)
		set(body, "height", h)
		var frames []any
		if a := in.address("image"); a != "" {
			frames = append(frames, map[string]string{"input_image": a, "frame": "first"})
		}
		if a := in.address("last_frame"); a != "" {
			frames = append(frames, map[string]string{"input_image": a, "frame": "last"})
		}
		if frames != nil {
			body["frame_images"] = frames
		}
		set(body, "reference_images", in.addresses("reference_images"))
		for _, name := range []string{"seed", "fps", "steps", "guidance_scale", "negative_prompt", "output_format",
			"output_quality"} {
			set(body, name, in.get(name))
		}
		return write(generations, model, in, body)
	},
	name: field("id"),
	poll: byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "completed", failed: "failed|cancelled"}.state(doc.Get("status").Str)
		s.Model, s.URL = doc.Get("model").Str, doc.Get("outputs.video_url").Str
		s.Code, s.Message = doc.Get("error.code").Str, doc.Get("error.message").Str
		s.Duration, _ = strconv.ParseFloat(textOf(doc.Get("seconds")), 64)
		return s, false
	},
}

// openRouter is OpenRouter's API:
//
//	POST /videos {model, prompt, aspect_ratio, resolution, duration, frame_images[], input_references[], generate_audio, seed} → {id, polling_url, status}
//	GET /videos/{id} → {status, error}; GET /videos/{id}/content → bytes, for the account only
var openRouter = shape{
	providers: []string{"openrouter"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"model": model, "prompt": in.prompt()}
		set(body, "duration", in.seconds())
		set(body, "aspect_ratio", in.ratio())
		set(body, "resolution", in.resolution())
		set(body, "generate_audio", in.get("generate_audio"))
		set(body, "seed", in.get("seed"))
		image := func(address string) map[string]any {
			return map[string]any{"type": "image_url", "image_url": map[string]string{"url": address}}
		}
		var frames []any
		for _, f := range [...][2]string{{"image", "first_frame"}, {"last_frame", "last_frame"}} {
			if a := in.address(f[0]); a != "" {
				frame := image(a)
				frame["frame_type"] = f[1]
				frames = append(frames, frame)
			}
		}
		if frames != nil {
			body["frame_images"] = frames
		}
		var references []any
		for _, a := range in.addresses("reference_images") {
			references = append(references, image(a))
		}
		if references != nil {
			body["input_references"] = references
		}
		return write(generations, model, in, body)
	},
	name: field("id"),
	poll: byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "completed", failed: "failed|cancelled", expired: "expired"}.state(doc.Get("status").Str)
		if s.Message = doc.Get("error").Str; s.Message == "" {
			s.Message = doc.Get("error.message").Str
		}
		if s.Status == "done" {
			s.endpoint = "videoContent"
		}
		return s, false
	},
}

// replicate is Replicate's API. Fields of the input are each model's own, so
// those of the client travel on.
//
//	POST models/{owner}/{name}/predictions {input} → {id, status}
//	POST predictions {version: "{owner}/{name}:{version}", input}, for a model with its version
//	GET predictions/{id} → {status, output, error}
var replicate = shape{
	providers: []string{"replicate"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"prompt": in.prompt()}
		set(body, "duration", in.seconds())
		set(body, "aspect_ratio", in.ratio())
		set(body, "resolution", in.resolution())
		set(body, "image", in.address("image"))
		set(body, "last_frame", in.address("last_frame"))
		set(body, "reference_images", in.addresses("reference_images"))
		in.rest(body)
		if strings.Contains(model, ":") {
			return write("predictions", model, in, map[string]any{"version": model, "input": body})
		}
		return write(generations, model, in, map[string]any{"input": body})
	},
	name: field("id"),
	poll: func(name string, _ int, _ []byte) (*plan, error) {
		p, err := byID("id")(name, 0, nil)
		p.endpoint = "status"
		return p, err
	},
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "succeeded", failed: "failed|canceled|aborted"}.state(doc.Get("status").Str)
		s.Model, s.Message = doc.Get("model").Str, doc.Get("error").Str
		out := doc.Get("output")
		if s.URL = out.Str; out.IsArray() {
			s.URL = out.Get("0").Str
		}
		return s, false
	},
}
