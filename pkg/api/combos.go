package api

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

func (c *change) comboList() (any, error) {
	out := struct {
		Object string        `json:"object"`
		Data   []store.Combo `json:"data"`
	}{"list", []store.Combo{}}
	for _, row := range c.Combos() {
		out.Data = append(out.Data, row.Combo)
	}
	c.etag = c.changed("combos")
	return out, nil
}

func (c *change) combo() (row storage.Combo, err error) {
	id := c.param()
	if !rpc.IsRowID(id) || !c.Load(storage.ComboPrefix+id, &row) {
		return row, apierr.New(404, "combo_not_found", "No combo has this id. GET /api/combos lists the combos.")
	}
	c.target = id
	return row, nil
}

func (c *change) comboGet() (any, error) {
	row, err := c.combo()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return row.Combo, nil
}

func (c *change) comboCreate() (any, error) {
	if err := c.match(c.changed("combos")); err != nil {
		return nil, err
	}
	in := c.input()
	in.only(comboFields...)
	row := applyCombo(in, storage.Combo{}, false)
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
	in.only(comboFields...)
	row = applyCombo(in, row, false)
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.fields = in.names
	return c.storeCombo(row, 200)
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
	return row.Combo, nil
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
