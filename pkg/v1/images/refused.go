package images

import (
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/apierr"
)

// otherQuality are the names of qualities in the other generation of OpenAI's models
// (docs/reference/api-shapes.md, 6).
var otherQuality = map[string]string{
	"hd": "high", "high": "hd", "xhigh": "hd", "max": "hd", "standard": "medium", "medium": "standard", "low": "standard",
	"auto": "standard",
}

// OtherForm reports whether to ask once more: without a field that the model does not
// have, or with the quality by its other name. The structured param and code of the
// error decide: a 400 says that no image was created. A second refusal of the same field
// is the answer to the client's own form.
//
//	{"error":{"message","type":"invalid_request_error","param":"response_format","code":"unknown_parameter"}}
func (a *attempt) OtherForm(e *apierr.Error, _ []byte) (retry bool, instead *apierr.Error) {
	asked := gjson.GetBytes(a.body, e.Param)
	if e.Param == "" || !asked.Exists() {
		return false, nil
	}
	if a.refused != nil && a.refused.Param == e.Param {
		return false, a.refused
	}
	var err error
	switch code := e.Code; {
	case e.Param == "model" || e.Param == "prompt" || e.Param == "n" || e.Param == "image" || e.Param == "stream":
		return false, nil
	case code == "unknown_parameter" || code == "unsupported_parameter":
		a.next, err = sjson.DeleteBytes(a.body, e.Param)
	case e.Param == "quality" && code == "invalid_value" && otherQuality[asked.Str] != "":
		a.next, err = sjson.SetBytes(a.body, e.Param, otherQuality[asked.Str])
	default:
		return false, nil
	}
	if err != nil {
		return false, nil // the field stays
	}
	a.refused, a.Dropped = e, append(a.Dropped, e.Param)
	return true, nil
}
