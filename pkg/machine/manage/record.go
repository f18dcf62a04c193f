package manage

import "weir/pkg/machine/rpc"

// list is an answer that has nothing but a list.
type list[V any] struct {
	Object string `json:"object"`
	Data   []V    `json:"data"`
}

// listOf answers with all records of a collection as they are shown.
func listOf[R, V any](c *change, collection string, rows []R, view func(row *R) V) (any, error) {
	out := list[V]{"list", make([]V, len(rows))}
	for i := range rows {
		out.Data[i] = view(&rows[i])
	}
	c.etag = c.changed(collection)
	return out, nil
}

// recordOf loads the record whose id the path has. Without one it returns missing.
func recordOf[R any](c *change, prefix string, missing error) (row R, err error) {
	id := c.param()
	if !rpc.IsRowID(id) || !c.Load(prefix+id, &row) {
		return row, missing
	}
	c.target = id
	return row, nil
}
