package manage

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// CompareMost is the number of comparisons a minute that find another secret: whoever may
// manage the machine could guess by them.
const CompareMost = 20

// compareSecrets reports which secrets are the stored ones. A row or a secret that is not stored is
// not equal.
//
//	POST /api/compare {"accounts": {"<id>": {"apiKey": "…"}}, "destinations": {"<id>": {"url": "…"}},
//	                   "identityProviders": {"<id>": {"clientSecret": "…"}}}
//	→ {"accounts": {"<id>": {"apiKey": true}}, "destinations": {"<id>": {"url": false}}, …}
//
// A comparison takes the same time for every stored secret. The gateway lends the rows of identity providers
// for a call of the operator.
func (c *change) compareSecrets() (any, error) {
	in := c.input()
	in.only("accounts", "destinations", "identityProviders")
	comparer, err := c.newComparer()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]map[string]bool{}
	for _, kind := range in.names {
		open := comparer.account
		switch kind {
		case "destinations":
			open = comparer.destination
		case "identityProviders":
			open = comparer.identityProvider
		}
		out[kind] = comparer.rows(in, kind, open)
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if comparer.failed != nil {
		e := apierr.New(503, "key_unavailable", "A stored secret cannot be decrypted; the operator must check CREDENTIALS_KEY.")
		e.Err = comparer.failed
		return nil, e
	}
	if comparer.differs {
		err = admit(c.Tx, &c.Meta.CompareAt, &c.Meta.Compares, CompareMost, "comparisons with other secrets")
	}
	c.fields, c.quiet = in.names, !comparer.differs // whoever sends the stored secrets learns none
	return out, err
}

// comparer compares secrets in one call.
type comparer struct {
	*change
	key     [32]byte
	differs bool
	failed  error // a secret that cannot be opened
}

func (c *change) newComparer() (*comparer, error) {
	out := &comparer{change: c}
	if _, err := io.ReadFull(c.o.Rand, out.key[:]); err != nil {
		return nil, fmt.Errorf("create a key of comparisons: %w", err)
	}
	return out, nil
}

// rows compares the secrets of the rows of a kind. open returns a stored one.
func (c *comparer) rows(in *Input, kind string,
	open func(id, field, given string) (stored secret.Secret, text string)) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	ids := sub(in.values[kind], kind)
	for _, id := range ids.names {
		out[id] = map[string]bool{}
		fields := sub(ids.values[id], kind+"."+id)
		for _, field := range fields.names {
			if fields.values[field].Type != gjson.String {
				fields.fail(field, "must be a string")
				continue
			}
			stored, text := open(id, field, strings.TrimSpace(fields.values[field].Str))
			out[id][field] = c.same(stored, text)
			c.differs = c.differs || !out[id][field]
		}
		if in.Err == nil {
			in.Err = fields.Err
		}
	}
	if in.Err == nil {
		in.Err = ids.Err
	}
	return out
}

// same reports whether a secret is stored and is the given one.
func (c *comparer) same(stored secret.Secret, given string) bool {
	digest := func(text string) []byte {
		h := hmac.New(sha256.New, c.key[:])
		io.WriteString(h, strings.TrimSpace(text))
		return h.Sum(nil)
	}
	return subtle.ConstantTimeCompare(digest(stored.Reveal()), digest(given)) == 1 && !stored.IsZero()
}

// account opens a secret of a connection.
func (c *comparer) account(id, field, given string) (secret.Secret, string) {
	var row storage.Connection
	if !c.Load(storage.ConnectionPrefix+id, &row) {
		return secret.Secret{}, given
	}
	return c.open(c.ID, row.ID, field, row.Secrets[field]), bareSecret(field, given)
}

// destination opens a secret of a destination, whose addresses are stored in their canonical
// form.
func (c *comparer) destination(id, field, given string) (secret.Secret, string) {
	var row storage.Destination
	if !c.Load(storage.DestinationPrefix+id, &row) {
		return secret.Secret{}, given
	}
	if k := deliver.KindOf(row.Kind); k != nil {
		for i := range k.Fields {
			if f := &k.Fields[i]; f.Name == field && f.Address {
				if canonical, _, err := c.o.Policy().Address(given); err == nil {
					given = canonical
				}
			}
		}
	}
	return c.open(c.ID, row.SealedAs(), field, row.Secrets[field]), given
}

// identityProvider opens the secret of the client of an identity provider.
func (c *comparer) identityProvider(id, field, given string) (secret.Secret, string) {
	for i := range c.env.IdentityProviders {
		if p := &c.env.IdentityProviders[i]; p.ID == id && field == rpc.ClientSecretField {
			return c.open(rpc.RegistryID, p.SealedAs(), field, p.ClientSecret), given
		}
	}
	return secret.Secret{}, given
}

func (c *comparer) open(machine, row, field string, sealed secret.Sealed) secret.Secret {
	if sealed == "" {
		return secret.Secret{}
	}
	plain, err := c.o.Keyring.Open(machine, row, field, sealed)
	if err != nil {
		c.failed = err
	}
	return plain
}
