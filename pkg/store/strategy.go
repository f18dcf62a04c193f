package store

import "slices"

// Strategies order the accounts of equal priority of a machine (Settings), and the
// members of a combo. See docs/routing.md.
const (
	Priority   = "priority" // as stored, the least recently failed first
	Fallback   = "fallback" // Priority, as combos call it
	RoundRobin = "round-robin"
	Affinity   = "affinity" // a session stays where it is, in equal shares
	Weighted   = "weighted" // a session stays where it is, in shares by weight
	Cheapest   = "cheapest" // members of combos only
	Fastest    = "fastest"
	LeastBusy  = "least-busy"
)

// IsStrategy reports whether s names a strategy for accounts, or for the members of a
// combo.
func IsStrategy(s string, combo bool) bool {
	return s == Cheapest && combo ||
		slices.Contains([]string{Priority, Fallback, RoundRobin, Affinity, Weighted, Fastest, LeastBusy}, s)
}

// Sticky reports whether a strategy keeps the calls of a session together.
func Sticky(strategy string) bool { return strategy == Affinity || strategy == Weighted }

// Weights of an account or a member of a combo.
const (
	DefaultWeight = 1
	MaxWeight     = 1000
)

// Share returns the weight of the connection.
func (c *Connection) Share() int { return max(c.Weight, DefaultWeight) }

// Share returns the weight of a member.
func (c *Combo) Share(member string) int { return max(c.Weights[member], DefaultWeight) }

// The units that the strategy Weighted keeps together.
const (
	SplitBySession = "session"
	SplitByKey     = "key" // the calls of one API key
)
