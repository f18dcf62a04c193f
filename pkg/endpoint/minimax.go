package endpoint

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/vendorerror"
)

// MiniMaxError returns the error in an answer of MiniMax's own APIs, or nil. See
// vendorerror.MiniMax.
func MiniMaxError(raw []byte) error {
	doc := gjson.ParseBytes(raw)
	status := vendorerror.MiniMax(doc)
	if status == 0 {
		return nil
	}
	return Said(apierr.New(status, "", "The provider refused the call."), vendorerror.Read(doc).Message)
}
