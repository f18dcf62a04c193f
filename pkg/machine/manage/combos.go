package manage

import (
	"slices"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// comboView is a combo as it is shown.
type comboView struct {
	store.Combo
	// Unknown are the members that no longer exist.
	Unknown []string `json:"unknown,omitempty"`
}

func (k *Known) viewCombo(row *storage.Combo) comboView {
	v := comboView{Combo: row.Combo}
	for _, m := range row.Models {
		if !k.isMember(m) {
			v.Unknown = append(v.Unknown, m)
		}
	}
	return v
}

func (c *change) comboList() (any, error) {
	return listOf(c, "combos", c.Combos(), namesOf(c.Tx).viewCombo)
}

func (c *change) combo() (row storage.Combo, err error) {
	return recordOf[storage.Combo](c, storage.ComboPrefix,
		apierr.New(404, "combo_not_found", "No combo has this id. GET /api/combos lists the combos."))
}

func (c *change) comboGet() (any, error) {
	row, err := c.combo()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return namesOf(c.Tx).viewCombo(&row), nil
}

func (c *change) comboCreate() (any, error) {
	if err := c.match(c.changed("combos")); err != nil {
		return nil, err
	}
	in := c.input()
	row := c.readCombo(in, storage.Combo{})
	if err := in.failed(); err != nil {
		return nil, err
	}
	id, err := rpc.NewID(c.o.Rand, 20)
	if err != nil {
		return nil, err
	}
	row.ID, row.CreatedAt, c.target, c.fields = id, c.Now, id, in.names
	return c.storeCombo(row, 201)
}

func (c *change) comboUpdate() (any, error) {
	row, err := c.combo()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	in := c.input()
	row = c.readCombo(in, row)
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.fields = in.names
	return c.storeCombo(row, 200)
}

// readCombo changes a combo by the fields of a body. Members must exist unless
// allowUnknown is set; those that the combo has already may be gone.
func (c *change) readCombo(in *Input, was storage.Combo) storage.Combo {
	in.only(append(comboFields[:], "allowUnknown")...)
	unknown, _ := in.bool("allowUnknown")
	row := applyCombo(in, was, false)
	if in.Err != nil || unknown {
		return row
	}
	known := namesOf(c.Tx)
	for _, m := range row.Models {
		if m != row.Name && in.Err == nil && !slices.Contains(was.Models, m) {
			known.checkMember(in, m)
		}
	}
	return row
}

// storeCombo checks the combo together with all others: a loop is refused.
func (c *change) storeCombo(row storage.Combo, status int) (any, error) {
	all := []storage.Combo{row}
	for _, other := range c.Combos() {
		if other.ID != row.ID {
			all = append(all, other)
		}
	}
	if len(all) > MaxCombos {
		return nil, apierr.New(409, "too_many", "A machine has at most %d combos.", MaxCombos)
	}
	if e := checkCombos(all); e != nil {
		return nil, e
	}
	row.UpdatedAt = c.Now
	c.PutCombo(&row)
	c.status, c.etag = status, row.Generation
	return namesOf(c.Tx).viewCombo(&row), nil
}

func (c *change) comboDelete() (any, error) {
	row, err := c.combo()
	if err != nil {
		return nil, err
	}
	if err := c.match(row.Generation); err != nil {
		return nil, err
	}
	c.Touch("combos")
	c.Del(storage.ComboPrefix + row.ID)
	c.status = 204
	return nil, nil
}
