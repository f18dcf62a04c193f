// Package people has what the gateway knows of people: who they are, their roles, and the rules
// that give roles by the claims of an identity provider. It is pure.
package people

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Role is what a person may do on a machine.
type Role string

// The roles. A member has keys of their own, and sees what these have done. A viewer reads all of
// the machine, an editor changes it, and an owner may also do what concerns people, stored
// bodies, exports and deletions.
const (
	Nobody Role = "" // no access
	Member Role = "member"
	Viewer Role = "viewer"
	Editor Role = "editor"
	Owner  Role = "owner"
	// None in a grant takes away what rules say.
	None Role = "none"
)

// ranked are the roles with access, the lowest first.
var ranked = [...]Role{Member, Viewer, Editor, Owner}

// rank returns the place of a role in the order of roles, 0 without access.
func (r Role) rank() int { return slices.Index(ranked[:], r) + 1 }

// Valid reports whether a role is one with access.
func (r Role) Valid() bool { return r.rank() > 0 }

// AtLeast reports whether a role includes another. No role includes None or an unknown one.
func (r Role) AtLeast(other Role) bool { return other.Valid() && r.rank() >= other.rank() }

// Everywhere stands for all machines.
const Everywhere = "*"

// Template bounds the keys that a member creates. 0 and nil are no bound, except for Keys.
type Template struct {
	Keys        int      `json:"keys,omitempty"` // at a time; 0 means DefaultKeys
	Models      []string `json:"models,omitempty"`
	RPM         int      `json:"rpm,omitempty"`
	DailyMax    int      `json:"dailyMax,omitempty"`
	TPM         int      `json:"tpm,omitempty"`
	MaxParallel int      `json:"maxParallel,omitempty"`
	Days        int      `json:"days,omitempty"` // after which a key expires
	// BudgetUSD is what all keys of the person may spend in a window of package budget.
	BudgetUSD    float64 `json:"budgetUsd,omitempty"`
	BudgetWindow string  `json:"budgetWindow,omitempty"` // "" means month
}

// DefaultKeys is the number of keys of a member whose template names none.
const DefaultKeys = 3

// MaxKeys returns the number of keys that a member may have at a time.
func (t *Template) MaxKeys() int {
	if t == nil || t.Keys == 0 {
		return DefaultKeys
	}
	return t.Keys
}

// Grant is a role on a machine. Template is for members.
type Grant struct {
	Role     Role      `json:"role"`
	Template *Template `json:"template,omitempty"`
}

// Grants are roles by machineId, or by Everywhere.
type Grants map[string]Grant

// Of returns the grant that counts on a machine: the highest role of those for it and for all
// machines. None in either takes all access away.
func (g Grants) Of(machineID string) Grant {
	own, all := g[machineID], g[Everywhere]
	if own.Role == None || all.Role == None {
		return Grant{Role: None}
	}
	return higher(own, all)
}

// higher returns the grant with the higher role, the first one of two equal ones.
func higher(a, b Grant) Grant {
	if b.Role.rank() > a.Role.rank() {
		return b
	}
	return a
}

// Any reports whether there is access to any machine.
func (g Grants) Any() bool {
	if g[Everywhere].Role == None {
		return false
	}
	for _, one := range g {
		if one.Role.Valid() {
			return true
		}
	}
	return false
}

// Merge returns the roles of rules and grants together: per machine the higher role, where a grant
// goes before a rule of the same role. None in a grant wins over every rule.
func Merge(rules, grants Grants) Grants {
	out := Grants{}
	for machine, r := range rules {
		if r.Role.Valid() {
			out[machine] = r
		}
	}
	for machine, g := range grants {
		switch {
		case g.Role == None:
			out[machine] = Grant{Role: None}
		case g.Role.Valid():
			out[machine] = higher(g, out[machine])
		}
	}
	return out
}

// Identity is a person as an identity provider states them.
type Identity struct {
	Issuer        string `json:"issuer"`
	Subject       string `json:"subject"`
	Name          string `json:"name,omitempty"`
	Email         string `json:"email,omitempty"`
	EmailVerified bool   `json:"emailVerified,omitempty"`
	Claims        []byte `json:"-"` // the verified claims as JSON; they are never stored
}

// ID returns the id of a person: "p_" and 32 hexadecimal digits. It is of issuer and subject
// alone, since e-mail addresses are given to others in time.
func (i *Identity) ID() string {
	sum := sha256.Sum256([]byte(i.Issuer + "\x00" + i.Subject))
	return IDPrefix + hex.EncodeToString(sum[:IDDigits/2])
}

// IDPrefix is how an ID begins, IDDigits the number of hexadecimal digits that follow.
const (
	IDPrefix = "p_"
	IDDigits = 32
)

// IsID reports whether a text has the form of an ID.
func IsID(s string) bool {
	digits, ok := strings.CutPrefix(s, IDPrefix)
	return ok && len(digits) == IDDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// Rule is a role for everyone whose claim has a value.
type Rule struct {
	// Claim is the path to the claim: names of namespaced claims have dots and slashes.
	Claim    []string  `json:"claim"`
	Value    string    `json:"value"`
	Role     Role      `json:"role"`
	Machines []string  `json:"machines"` // ids, or Everywhere
	Template *Template `json:"template,omitempty"`
}

// ErrTooManyGroups reports that the provider has left a claim out, since the person is in too
// many groups. The roles of an earlier sign-in are never taken instead.
var ErrTooManyGroups = errors.New("the person is in too many groups for the identity provider to list: " +
	"use app roles instead of groups")

// Resolve returns the roles of rules by the JSON of verified claims: of several rules the
// highest per machine, and nothing without one. A claim is a text, a list of texts, or an object
// whose names count (Zitadel); its value must be exactly that of the rule.
func Resolve(rules []Rule, claims []byte) (Grants, error) {
	doc := gjson.ParseBytes(claims)
	if !gjson.ValidBytes(claims) || !doc.IsObject() {
		return nil, errors.New("the claims are not a JSON object")
	}
	out := Grants{}
	for i := range rules {
		r := &rules[i]
		if len(r.Claim) == 0 || r.Value == "" || !r.Role.Valid() {
			continue
		}
		if at(doc, []string{"_claim_names", r.Claim[0]}).Exists() && !at(doc, r.Claim[:1]).Exists() {
			return nil, ErrTooManyGroups
		}
		if !hasValue(at(doc, r.Claim), r.Value) {
			continue
		}
		for _, machine := range r.Machines {
			out[machine] = higher(out[machine], Grant{r.Role, r.Template})
		}
	}
	return out, nil
}

// at returns the value at a path. Names are compared whole, without gjson's syntax of paths.
func at(v gjson.Result, path []string) gjson.Result {
	for _, name := range path {
		var found gjson.Result
		if v.IsObject() {
			v.ForEach(func(key, value gjson.Result) bool {
				if key.Str == name {
					found = value
				}
				return true
			})
		}
		v = found
	}
	return v
}

// hasValue reports whether a claim is a text, lists it, or has it as a name.
func hasValue(claim gjson.Result, want string) bool {
	found := false
	switch {
	case claim.Type == gjson.String:
		return claim.Str == want
	case claim.IsArray():
		claim.ForEach(func(_, v gjson.Result) bool {
			found = found || v.Type == gjson.String && v.Str == want
			return !found
		})
	case claim.IsObject():
		claim.ForEach(func(key, _ gjson.Result) bool {
			found = found || key.Str == want
			return !found
		})
	}
	return found
}
