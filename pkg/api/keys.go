package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// keyView is a gateway key as it is shown.
type keyView struct {
	ID            string   `json:"id"`
	APIKey        string   `json:"apiKey,omitempty"` // once, at its creation
	Name          string   `json:"name,omitempty"`
	Last4         string   `json:"last4,omitempty"`
	Scopes        []string `json:"scopes"`
	Models        []string `json:"models,omitempty"`
	RPM           int      `json:"rpm,omitempty"`
	DailyMax      int      `json:"dailyMax,omitempty"`
	RequestsToday int      `json:"requestsToday"` // counted for keys with a limit
	CreatedAt     int64    `json:"createdAt"`
	ExpiresAt     int64    `json:"expiresAt,omitempty"`
	LimitedUntil  int64    `json:"limitedUntil,omitempty"`
	Generation    int64    `json:"generation"`
}

func viewKey(t *storage.Tx, k *storage.Key) keyView {
	v := keyView{
		ID: k.ID, Name: k.Name, Last4: k.Last4, Scopes: k.Scopes, Models: k.Models, RPM: k.RPM, DailyMax: k.DailyMax,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, Generation: k.Generation,
	}
	if len(v.Scopes) == 0 {
		v.Scopes = []string{"data"}
	}
	v.LimitedUntil = t.LimitedUntil(k)
	var c storage.CountRow
	if t.Load(storage.CountPrefix+k.ID, &c) {
		v.RequestsToday = c.At(t.Now).InDay
	}
	return v
}

func (c *change) keyList() (any, error) {
	out := struct {
		Object string    `json:"object"`
		Data   []keyView `json:"data"`
	}{"list", []keyView{}}
	for _, k := range c.Keys() {
		out.Data = append(out.Data, viewKey(c.Tx, &k))
	}
	c.etag = c.changed("keys")
	return out, nil
}

func (c *change) key() (row storage.Key, err error) {
	id := c.param()
	if !rpc.IsRowID(id) || !c.Load(storage.KeyPrefix+id, &row) {
		return row, apierr.New(404, "key_not_found", "No key has this id. GET /api/keys lists the keys.")
	}
	c.target = c.o.MaskedKey(id)
	return row, nil
}

func (c *change) keyGet() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return viewKey(c.Tx, &row), nil
}

func (c *change) keyCreate() (any, error) {
	in := readObject(orEmpty(c.env.Body), "")
	in.only("name", "scopes", "expiresAt", "models", "rpm", "dailyMax", "allowUnknown")
	var row storage.Key
	row.Name, _ = in.text("name", 200)
	row.Scopes = readScopes(in)
	row.Models, _ = in.texts("models", 500, maxModelName)
	for i, name := range row.Models {
		row.Models[i] = catalog.PlainName(name)
	}
	if unknown, _ := in.bool("allowUnknown"); in.Err == nil && !unknown {
		known := namesOf(c.Tx)
		for i := 0; i < len(row.Models) && in.Err == nil; i++ {
			known.CheckAllowed(in, row.Models[i])
		}
	}
	rpm, _ := in.int("rpm", 0, 1_000_000)
	daily, _ := in.int("dailyMax", 0, 1_000_000_000)
	if at, ok := in.time("expiresAt"); ok && at != 0 {
		if at <= c.Now {
			in.fail("expiresAt", "has passed already")
		}
		row.ExpiresAt = at
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if err := c.mayGrant(row.Scopes); err != nil {
		return nil, err
	}
	if err := c.match(c.changed("keys")); err != nil {
		return nil, err
	}
	if len(c.List(storage.KeyPrefix)) >= MaxKeys {
		return nil, apierr.New(409, "too_many", "A machine has at most %d keys.", MaxKeys)
	}
	text, minted, err := rpc.MintKey(c.o.Rand, c.o.KeySecret, c.ID)
	if err != nil {
		return nil, err
	}
	row.ID, row.Digest, row.Last4 = minted.ID, minted.Digest, minted.Last4
	row.RPM, row.DailyMax, row.CreatedAt = int(rpm), int(daily), c.Now
	c.PutKey(&row)
	c.target, c.fields = c.o.MaskedKey(row.ID), in.names
	c.status, c.etag = 201, row.Generation
	v := viewKey(c.Tx, &row)
	v.APIKey = text
	return v, nil
}

func (c *change) keyDelete() (any, error) {
	row, err := c.key()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	c.Touch("keys")
	c.Del(storage.KeyPrefix + row.ID)
	c.Del(storage.CountPrefix + row.ID)
	c.status = 204
	return nil, nil
}

const MaxKeys = 1000

// MaskedKey is how audit names a key (docs/reference/reliability.md, T34).
func (o *Manager) MaskedKey(id string) string {
	if id == "" {
		return ""
	}
	mac := hmac.New(sha256.New, o.KeySecret)
	mac.Write([]byte("audit:" + id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
