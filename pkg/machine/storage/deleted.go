package storage

// DeletedPrefix is the prefix of the rows of deleted connections, by id.
const DeletedPrefix = "deleted:"

// UndoFor is how long a deleted connection can be restored, in milliseconds. Then it is
// erased, its credentials with it.
const UndoFor = Minute

// Deleted is a connection that can be restored.
type Deleted struct {
	Connection Connection `json:"connection"`
	DeletedAt  int64      `json:"deletedAt"`
}

// DeleteConnection deletes a connection. It can be restored for UndoFor.
func (t *Tx) DeleteConnection(c *Connection) {
	t.Touch("providers")
	t.Del(ConnectionPrefix + c.ID)
	t.Del(IntentPrefix + c.ID)
	t.ForgetRefusals(c.ID)
	t.ForgetQuota(c.ID)
	t.ClearCooldowns(c.ID)
	t.Put(DeletedPrefix+c.ID, Deleted{*c, t.Now})
	t.Meta.EraseAt = t.Now + UndoFor
	t.Due, t.Suspect = true, true
}

// RestoreConnection restores a deleted connection, and reports whether that was still
// possible: not if an import has brought it back.
func (t *Tx) RestoreConnection(id string) (c Connection, ok bool) {
	var d Deleted
	if !t.Load(DeletedPrefix+id, &d) || d.over(t.Now) {
		return c, false
	}
	if _, back := t.Get(ConnectionPrefix + id); back {
		return c, false
	}
	t.Del(DeletedPrefix + id)
	t.PutConnection(&d.Connection)
	return d.Connection, true
}

// over reports whether the connection must be erased: also if the clock went back.
func (d *Deleted) over(now int64) bool { return d.DeletedAt > now || now >= d.DeletedAt+UndoFor }

// Erase erases the deleted connections whose time has passed.
func (t *Tx) Erase() {
	if t.Meta.EraseAt == 0 {
		return
	}
	t.Meta.EraseAt = 0
	for _, d := range RowsOf[Deleted](t, DeletedPrefix) {
		if !d.over(t.Now) {
			t.Meta.EraseAt = max(t.Meta.EraseAt, d.DeletedAt+UndoFor)
			continue
		}
		t.Del(DeletedPrefix + d.Connection.ID)
		if _, back := t.Get(ConnectionPrefix + d.Connection.ID); !back {
			t.ForgetConnection(d.Connection.ID)
		}
	}
}

// ForgetConnection removes what calls have shown of a connection.
func (t *Tx) ForgetConnection(id string) {
	t.Del(ErrorPrefix + id)
	t.Del(HealthPrefix + id)
	t.Del(ConnUsePrefix + id)
}
