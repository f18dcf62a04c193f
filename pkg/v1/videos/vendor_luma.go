package videos

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// luma is Luma's Dream Machine API:
//
//	POST generations/video {prompt, model, aspect_ratio, duration "5s", resolution, loop, keyframes{frame0,frame1}} → {id, state}
//	GET generations/{id} → {state queued|dreaming|completed|failed, failure_reason, assets.video}
var luma = shape{
	providers: []string{"luma"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"model": model, "prompt": in.prompt()}
		if seconds := in.seconds(); seconds > 0 {
			body["duration"] = strconv.FormatInt(seconds, 10) + "s"
		}
		set(body, "aspect_ratio", in.ratio())
		set(body, "resolution", in.resolution())
		set(body, "loop", in.get("loop"))
		frames := map[string]any{}
		for name, field := range map[string]string{"frame0": "image", "frame1": "last_frame"} {
			if a := in.address(field); a != "" {
				frames[name] = map[string]string{"type": "image", "url": a}
			}
		}
		if len(frames) > 0 {
			body["keyframes"] = frames
		}
		return write(generations, model, in, body)
	},
	name: field("id"),
	poll: byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "completed", failed: "failed"}.state(doc.Get("state").Str)
		s.Model, s.URL, s.Message = doc.Get("model").Str, doc.Get("assets.video").Str, doc.Get("failure_reason").Str
		return s, false
	},
}
