package videos

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// runway is Runway's API, version 2024-11-06:
//
//	POST text_to_video | image_to_video | video_to_video {model, promptText, promptImage?, ratio, duration, seed} → {id}
//	GET tasks/{id} → {status, progress 0–1, output[], failure, failureCode}
var runway = shape{
	providers: []string{"runway"}, also: edits,
	create: createRunway,
	name:   field("id"),
	poll:   byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "SUCCEEDED", failed: "FAILED|CANCELLED"}.state(doc.Get("status").Str)
		if p := doc.Get("progress"); p.Type == gjson.Number && s.Status == "pending" {
			s.Progress = max(0, min(99, int(p.Num*100)))
		}
		s.URL = doc.Get("output.0").Str
		s.Code, s.Message = doc.Get("failureCode").Str, doc.Get("failure").Str
		return s, false
	},
}

// runwayRatios are Runway's sizes for aspect ratios.
var runwayRatios = [...][2]string{
	{"16:9", "1280:720"}, {"9:16", "720:1280"}, {"1:1", "960:960"}, {"4:3", "1104:832"}, {"3:4", "832:1104"},
	{"21:9", "1584:672"},
}

// runwayDefaults are fields that models require and clients may omit, from the
// types of @runwayml/sdk. Other models have their own defaults.
var runwayDefaults = [...]struct {
	model, ratio string
	seconds      int64
}{
	{"gen4.5", "1280:720", 5}, {"gen4_turbo", "1280:720", 5}, {"gen3a_turbo", "1280:768", 5},
	{"veo3", "1280:720", 8}, {"veo3.1", "1280:720", 0}, {"veo3.1_fast", "1280:720", 0},
}

func createRunway(in *input, model, endpoint string) (*plan, error) {
	body := map[string]any{"model": model, "promptText": in.prompt()}
	ratio, resolution := in.ratio(), in.resolution()
	for _, known := range runwayRatios {
		if known[0] == ratio {
			body["ratio"] = known[1]
		}
	}
	if resolution == "1080p" && (ratio == "16:9" || ratio == "9:16") {
		body["ratio"] = map[string]string{"16:9": "1920:1080", "9:16": "1080:1920"}[ratio]
	}
	if ratio != "" && body["ratio"] == nil {
		return nil, apierr.Invalid("aspect_ratio", "The provider of this model does not support this aspect ratio.")
	}
	set(body, "duration", in.seconds())
	set(body, "seed", in.get("seed"))
	to := "videos"
	first, last := in.address("image"), in.address("last_frame")
	switch {
	case endpoint == edits:
		to = "videoToVideo"
		if body["videoUri"] = in.address("video"); body["videoUri"] == "" {
			return nil, apierr.Invalid("video", "The video is missing.")
		}
		delete(body, "duration")
	case first != "" && last != "":
		to = "imageToVideo"
		body["promptImage"] = []any{map[string]string{"uri": first, "position": "first"},
			map[string]string{"uri": last, "position": "last"}}
	case first != "":
		to = "imageToVideo"
		body["promptImage"] = first
	}
	for _, d := range runwayDefaults {
		if d.model != model || endpoint == edits {
			continue
		}
		if body["ratio"] == nil {
			body["ratio"] = d.ratio
		}
		if body["duration"] == nil {
			set(body, "duration", d.seconds)
		}
	}
	return write(to, model, in, body)
}
