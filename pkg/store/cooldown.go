package store

import "time"

// Reasons of a cooldown. They are shown by GET /api/models/availability.
const (
	RateLimited = "rate_limited"  // 429: one model of an account
	KeyRefused  = "key_refused"   // 401 or 403: the whole account
	OutOfCredit = "out_of_credit" // 402, or 429 insufficient_quota: the whole account
)

// KeyUnavailable is the reason, and the code of the error, of an account whose credentials
// CREDENTIALS_KEY does not open. It is no cooldown.
const KeyUnavailable = "key_unavailable"

// Bounds of cooldowns. The isolate that decides on one and the object that
// stores it use the same.
const (
	KeyRefusedFor  = 2 * time.Minute
	OutOfCreditFor = time.Hour // without a stated reset
	MinCooldown    = time.Second
	MaxCooldown    = 24 * time.Hour     // of a stated wait
	MaxWeekly      = 7 * 24 * time.Hour // of a stated wait for a weekly window
	// ForgetCooldown is how long after its end a cooldown still counts for the
	// backoff and the order of accounts.
	ForgetCooldown = 10 * time.Minute
	// ClockSkew is how far apart the clocks of isolates and objects may be.
	ClockSkew = 5 * time.Second

	MaxCooledModels = 64   // of a connection; more cool the connection
	MaxCooledRows   = 1024 // of a machine
	MaxCooledModel  = 256  // bytes of a model id in a cooldown
)

// Cooldown keeps an account out of the plan for a while.
//
//easyjson:json
type Cooldown struct {
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model,omitempty"` // upstream model; empty means the whole account
	Until        int64  `json:"until"`           // Unix milliseconds
	Reason       string `json:"reason"`          // RateLimited, KeyRefused, OutOfCredit
	Failures     int    `json:"failures,omitempty"`
	Since        int64  `json:"since,omitempty"`
}

// Left returns how many milliseconds of the cooldown are left. A cooldown that
// began after now, beyond ClockSkew, has none: the clock was set back, which must
// not make it longer.
func (c *Cooldown) Left(now int64) int64 {
	if c.Since > now+ClockSkew.Milliseconds() {
		return 0
	}
	return max(0, min(c.Until-now, c.Until-c.Since))
}

// Bounded returns the cooldown as it may be stored at the time now: no longer
// than its reason allows, and begun now at the latest. A former name of a reason
// becomes the present one; with any other reason the cooldown has ended.
func (c Cooldown) Bounded(now int64) Cooldown {
	if c.Since <= 0 {
		c.Since = now
	}
	if ahead := c.Since - now; ahead > 0 {
		c.Since, c.Until = now, c.Until-ahead
	}
	var most time.Duration
	switch c.Reason {
	case RateLimited:
		most = MaxWeekly
	case OutOfCredit, "quota":
		c.Reason, most = OutOfCredit, MaxWeekly
	case KeyRefused, "unauthorized":
		c.Reason, most = KeyRefused, KeyRefusedFor
	}
	c.Until = min(c.Until, c.Since+most.Milliseconds())
	c.Failures = min(max(c.Failures, 0), 64)
	return c
}
