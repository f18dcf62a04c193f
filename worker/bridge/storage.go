//go:build js && wasm

package bridge

import (
	"encoding/binary"

	"weir/pkg/machine"
)

// Storage is the storage of the object that a call is for. It is synchronous.
type Storage struct{ call int32 }

// sound returns n, or panics when the storage failed; nothing is changed then.
func sound(n int32) int32 {
	if n == -2 {
		panic(machine.ErrStorage)
	}
	return n
}

// Get gives a value.
func (s Storage) Get(key string) ([]byte, bool) {
	buf := make([]byte, 2048)
	n := sound(hostStorageGet(s.call, sptr(key), int32(len(key)), ptr(buf), int32(len(buf))))
	if n < 0 {
		return nil, false
	}
	if int(n) > len(buf) {
		buf = make([]byte, n)
		sound(hostStorageGet(s.call, sptr(key), int32(len(key)), ptr(buf), n))
	}
	return buf[:n], true
}

// removed stands for the length of the value of a row that goes.
const removed = 1<<32 - 1

// Write stores rows and sets the alarm in one transaction.
func (s Storage) Write(rows []machine.Row, alarm int64) {
	var buf []byte
	for _, r := range rows {
		n := uint32(len(r.Value))
		if r.Value == nil {
			n = removed
		}
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(r.Key)))
		buf = binary.LittleEndian.AppendUint32(buf, n)
		buf = append(append(buf, r.Key...), r.Value...)
	}
	sound(hostStorageWrite(s.call, ptr(buf), int32(len(buf)), float64(alarm)))
}

// List gives the rows under a prefix.
func (s Storage) List(prefix, start string, limit int) []machine.Row {
	n := sound(hostStorageList(s.call, sptr(prefix), int32(len(prefix)), sptr(start), int32(len(start)), int32(limit)))
	if n == 0 {
		return nil
	}
	buf := make([]byte, n)
	hostStorageRows(ptr(buf))
	var rows []machine.Row
	for len(buf) >= 8 {
		k, v := binary.LittleEndian.Uint32(buf), binary.LittleEndian.Uint32(buf[4:])
		buf = buf[8:]
		rows = append(rows, machine.Row{Key: string(buf[:k]), Value: buf[k : k+v : k+v]})
		buf = buf[k+v:]
	}
	return rows
}

// SetAlarm sets the object's alarm.
func (s Storage) SetAlarm(at int64) { sound(hostStorageAlarm(s.call, float64(at))) }
