package storage

// RequestKey returns the key of a page of the latest requests, see pageKey.
func (t *Tx) RequestKey(page int64) string { return t.pageKey(latest, page) }
