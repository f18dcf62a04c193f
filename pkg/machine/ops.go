package machine

import "weir/pkg/store"

// The shapes of the operations that the data plane calls. Times are Unix
// milliseconds.
//
//	snapshot  {"have":generation}                     200 Same, or a store.Machine; 404 no such machine
//	report    Report                                  200 Reported
//	refresh   {"connectionId":"…","tokenGeneration":n} 200 Refreshed; 409 cannot; 503 not now
//	job.put   Job                                     200 {}
//	job.get   {"id":"…"}                              200 Job; 404
//
// A refresh must be sent with exactly these bytes, in this order and without
// blanks: identical calls that overlap are one call.

// Same tells that the caller's replica is the newest.
type Same struct {
	Same       bool  `json:"same"`
	Generation int64 `json:"generation"`
}

// Report is what an isolate has seen since its last one.
type Report struct {
	Cooldowns []store.Cooldown `json:"cooldowns,omitempty"`
	// Cleared are accounts that worked again: At is when, as Since is of a
	// cooldown.
	Cleared []Cleared `json:"cleared,omitempty"`
	// Errors are the last errors of connections, redacted; "" clears.
	Errors []LastError `json:"errors,omitempty"`
	// Refusals are what servers have refused by name; an Until of 0 means that
	// the server accepts it again.
	Refusals []store.Refusal `json:"refusals,omitempty"`
	// Keys counts requests per key, for its limits.
	Keys []KeyCount `json:"keys,omitempty"`
	// Usage is added to the day's rows.
	Usage []Usage `json:"usage,omitempty"`
	// Requests are the clients' last ones, oldest first.
	Requests []store.Request `json:"requests,omitempty"`
}

// Cleared tells that an account, or one model of it, works.
type Cleared struct {
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model,omitempty"`
	At           int64  `json:"at"`
}

// LastError is what went wrong last with a connection.
type LastError struct {
	ConnectionID string `json:"connectionId"`
	Text         string `json:"text"`
}

// KeyCount counts a key's requests.
type KeyCount struct {
	KeyID    string `json:"keyId"`
	Requests int    `json:"requests"`
}

// Usage is what calls of one kind have used.
type Usage struct {
	KeyID            string  `json:"keyId,omitempty"`
	ConnectionID     string  `json:"connectionId,omitempty"`
	Provider         string  `json:"provider,omitempty"`
	Model            string  `json:"model,omitempty"` // public id
	Endpoint         string  `json:"endpoint,omitempty"`
	Requests         int64   `json:"requests"`
	Errors           int64   `json:"errors,omitempty"`
	InputTokens      int64   `json:"inputTokens,omitempty"`
	OutputTokens     int64   `json:"outputTokens,omitempty"`
	ReasoningTokens  int64   `json:"reasoningTokens,omitempty"` // part of the output
	CacheReadTokens  int64   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64   `json:"cacheWriteTokens,omitempty"`
	CostUSD          float64 `json:"costUsd,omitempty"`
	Unpriced         int64   `json:"unpriced,omitempty"`  // requests whose cost is not known
	LatencyMs        int64   `json:"latencyMs,omitempty"` // the sum over Calls
	Calls            int64   `json:"calls,omitempty"`     // clients' requests; Requests counts each attempt
	FailedCalls      int64   `json:"failedCalls,omitempty"`
}

// Reported is the answer to a Report: the generation that carries it, and the
// keys that are over a limit now.
type Reported struct {
	Generation int64        `json:"generation"`
	Limited    []LimitedKey `json:"limited,omitempty"`
}

// LimitedKey is a key that may be used again at a time.
type LimitedKey struct {
	KeyID string `json:"keyId"`
	Until int64  `json:"until"`
}

// Refreshed is the answer to a refresh: the connection with its new token,
// sealed. Unsaved tells that the token could not be stored yet.
type Refreshed struct {
	Connection store.Connection `json:"connection"`
	Generation int64            `json:"generation"` // of the machine
	Unsaved    bool             `json:"unsaved,omitempty"`
}

// Job is something an upstream does for the machine beyond one request: which
// account made it, and where. The id is the upstream's.
type Job struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"` // video, response, …
	ConnectionID string `json:"connectionId"`
	Provider     string `json:"provider,omitempty"`
	Origin       string `json:"origin,omitempty"` // of the upstream's address
	Model        string `json:"model,omitempty"`
	KeyID        string `json:"keyId,omitempty"`
	CreatedAt    int64  `json:"createdAt,omitempty"`
	ExpiresAt    int64  `json:"expiresAt,omitempty"` // 0 means in 30 days
}
