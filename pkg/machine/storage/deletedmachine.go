package storage

// RestorableFor is how long a deleted machine can be restored, in milliseconds. Then it is
// erased, its credentials with it.
const RestorableFor = 7 * Day

// StillDeleted says why a machine with the id of a deleted one is not created.
const StillDeleted = "The machine was deleted and can still be restored: restore it, or delete it with now=true first."

// DeleteMachine deletes the machine, which has its rows for RestorableFor. Bodies of requests
// are erased at once: they are stored for hours.
func (t *Tx) DeleteMachine() error {
	if err := t.DropCaptures(); err != nil {
		return err
	}
	t.Meta.Deleted, t.Meta.DeletedAt = true, t.Now
	t.changeRegistered()
	return nil
}

// Restorable reports whether the machine was deleted and can still be restored.
func (t *Tx) Restorable() bool {
	return t.Meta.DeletedAt > 0 && t.Now < t.Meta.DeletedAt+RestorableFor
}

// RestoreMachine restores the machine, as it was when it was deleted.
func (t *Tx) RestoreMachine() {
	t.Meta.Deleted, t.Meta.DeletedAt = false, 0
	t.changeRegistered()
	t.Due, t.Suspect = true, true
}

// EraseMachine erases a machine: its rows go, its replica follows by alarm. A mark of the
// deletion stays, with the seed documents that were imported, since KV may return them for long.
func (t *Tx) EraseMachine() error {
	if err := t.DropCaptures(); err != nil {
		return err
	}
	if err := t.DropLogs(); err != nil {
		return err
	}
	if err := t.Commit(); err != nil { // Wipe leaves what this turn has changed
		return err
	}
	t.Wipe()
	t.Meta.Deleted, t.Meta.DeletedAt, t.Meta.Name = true, 0, ""
	t.Meta.RefreshAt, t.Meta.PruneAt, t.Meta.EraseAt = 0, 0, 0
	t.changeRegistered()
	t.Meta.AuditBase = t.Meta.AuditHash
	t.Audit("operator", "DELETE /api/machines/{id}", t.ID, nil)
	return nil
}
