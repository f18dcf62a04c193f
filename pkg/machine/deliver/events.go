package deliver

import (
	"slices"

	"weir/pkg/machine/storage"
)

// Event is something that destinations of notifications may choose.
type Event struct {
	Name    string
	Default bool   // is sent to a destination that has chosen none
	Text    string // a short description
}

// The names of the events.
const (
	AccountRefused  = "account.refused"
	AccountSignIn   = "account.sign_in"
	AccountCredit   = "account.out_of_credit"
	AccountCooling  = "account.cooling"
	ModelDown       = "model.down"
	Recovered       = "recovered"
	BudgetReached   = "budget.reached"
	BudgetExhausted = "budget.exhausted"
	WeeklySpend     = "spend.weekly"
	ErrorRate       = "errors.rate"
	KeyCreated      = "key.created"
	KeyNetworks     = "key.networks"
	AdminSignIn     = "admin.sign_in"
	DiskFull        = "disk.full"
	PricesStale     = "prices.stale"
	Test            = "test" // is sent to the tested destination alone
	Summary         = "summary"
)

// events are those that can be chosen.
var events = [...]Event{
	{AccountRefused, true, "A provider refuses the key of an account"},
	{AccountSignIn, true, "An account needs a new sign-in"},
	{AccountCredit, true, "An account has no credit left"},
	{AccountCooling, false, "An account is limited for coolingMinutes"},
	{ModelDown, true, "No account of a model can be used"},
	{Recovered, true, "A problem is resolved"},
	{BudgetReached, true, "A budget has reached 50 or 80 %"},
	{BudgetExhausted, true, "A budget is used up"},
	{WeeklySpend, false, "The spend of the week, each Monday"},
	{ErrorRate, false, "More than errorPercent of the requests of ten minutes have failed"},
	{KeyCreated, false, "A key was created"},
	{KeyNetworks, false, "A key is used from new networks"},
	{AdminSignIn, true, "Someone who can change the machine signed in from a new address"},
	{DiskFull, true, "The disk of the server is nearly full"},
	{PricesStale, false, "The prices could not be refreshed for a day"},
}

// Events returns all events. The result must not be changed.
func Events() []Event { return events[:] }

// IsEvent reports whether there is an event with a name.
func IsEvent(name string) bool {
	return slices.ContainsFunc(events[:], func(e Event) bool { return e.Name == name })
}

// Wants reports whether a destination has chosen an event.
func Wants(d *storage.Destination, event string) bool {
	if len(d.Events) > 0 {
		return slices.Contains(d.Events, event)
	}
	return slices.ContainsFunc(events[:], func(e Event) bool { return e.Name == event && e.Default })
}
