package ir

import "unicode/utf8"

// UserLimit returns a provider's limit for a user's id in OpenAI's dialects, in
// characters.
func UserLimit(provider string) int { return DeviationsOf(provider).UserLimit() }

// UserLimit returns the limit for a user's id in OpenAI's dialects, in characters.
func (v *Deviations) UserLimit() int {
	if v.User > 0 {
		return v.User
	}
	return 128
}

// ShortUser returns a user's id, or a stable hash of one over the limit. Vendors
// only compare it.
func ShortUser(id string, limit int) string {
	if len(id) <= limit || utf8.RuneCountInString(id) <= limit {
		return id
	}
	return "user_" + digest(id)[:32]
}
