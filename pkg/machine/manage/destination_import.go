package manage

import (
	"cmp"
	"maps"
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// exportDestination is a destination without what deliveries have shown. Secret settings
// are in encrypted exports only.
type exportDestination struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Enabled   bool              `json:"enabled"`
	Events    []string          `json:"events,omitempty"`
	Settings  map[string]string `json:"settings"`
	CreatedAt int64             `json:"createdAt"`
}

func (c *change) exportDestinations(secrets bool) ([]exportDestination, error) {
	list := []exportDestination{}
	for _, row := range c.Destinations() {
		d := exportDestination{row.ID, row.Name, row.Kind, !row.Paused, row.Events, map[string]string{}, row.CreatedAt}
		maps.Copy(d.Settings, row.Options)
		if secrets {
			opened, err := c.o.OpenDestination(c.ID, &row)
			if err != nil {
				e := apierr.New(503, "key_unavailable", "A stored secret of a destination cannot be decrypted; the operator must check CREDENTIALS_KEY.")
				e.Err = err
				return nil, e
			}
			for field := range row.Secrets {
				d.Settings[field] = opened.Value(field)
			}
		}
		list = append(list, d)
	}
	return list, nil
}

// importedDestination is a destination of a document with its secrets in the clear.
type importedDestination struct {
	row   storage.Destination
	plain map[string]string
}

// importedDestinations reads the destinations of a document. One without a secret that its
// kind needs keeps the stored one, or is paused.
func (c *change) importedDestinations(list gjson.Result) (all []importedDestination, err error) {
	if !list.Exists() || list.Type == gjson.Null {
		return nil, nil
	}
	if !list.IsArray() {
		return nil, apierr.Invalid("document.destinations", "document.destinations must be an array.")
	}
	ids := map[string]bool{}
	for i, v := range list.Array() {
		in := sub(v, "document.destinations["+strconv.Itoa(i)+"]")
		id, _ := in.text("id", 64)
		if id != "" && !rpc.IsRowID(id) || ids[id] {
			in.fail("id", "must be 1 to 64 of letters, digits, dash and underscore, and unique")
		}
		var d importedDestination
		if id != "" {
			c.Load(storage.DestinationPrefix+id, &d.row)
			ids[id] = true
		}
		d.plain = c.o.readDestination(in, &d.row, true)
		if at, ok := in.time("createdAt"); ok && d.row.CreatedAt == 0 {
			d.row.CreatedAt = at
		}
		if err := in.failed(); err != nil {
			return nil, err
		}
		if d.row.ID = id; id == "" {
			if d.row.ID, err = rpc.NewID(c.o.Rand, 20); err != nil {
				return nil, err
			}
		}
		d.row.CreatedAt = cmp.Or(d.row.CreatedAt, c.Now)
		all = append(all, d)
	}
	return all, nil
}

func (c *change) putDestinations(all []importedDestination) error {
	for i := range all {
		if err := c.putDestination(&all[i].row, all[i].plain); err != nil {
			return err
		}
	}
	return c.bounded()
}
