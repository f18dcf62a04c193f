package api

import (
	"encoding/json"
	"strconv"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// auditList answers GET /api/audit?after=&limit=&verify=true: the newest
// records first, those before the number "before" when it is given.
func (c *change) auditList() (any, error) {
	number := func(name string, otherwise, least, most int64) (int64, error) {
		v := c.query(name)
		if v == "" {
			return otherwise, nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most {
			return 0, apierr.Invalid(name, "%s must be an integer from %d to %d.", name, least, most)
		}
		return n, nil
	}
	limit, err := number("limit", 100, 1, storage.MaxAuditPage)
	if err != nil {
		return nil, err
	}
	before, err := number("before", c.Meta.AuditSeq+1, 1, 1<<53)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		More   bool              `json:"has_more"`
		Chain  *chainState       `json:"chain,omitempty"`
	}{Object: "list", Data: []json.RawMessage{}}
	for seq := min(before, c.Meta.AuditSeq+1) - 1; seq > 0; seq-- {
		var a storage.AuditRow
		if !c.Load(storage.AuditKey(seq), &a) {
			break
		}
		if int64(len(out.Data)) == limit {
			out.More = true
			break
		}
		out.Data = append(out.Data, a.Record)
	}
	if c.query("verify") == "true" {
		at := c.ChainBreak()
		out.Chain = &chainState{at == 0, at}
	}
	return out, nil
}

type chainState struct {
	OK       bool  `json:"ok"`
	BrokenAt int64 `json:"brokenAt,omitempty"`
}
