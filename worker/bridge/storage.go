//go:build js && wasm

package bridge

import (
	"encoding/binary"

	"weir/pkg/machine/storage"
	"weir/worker/contract"
)

// Storage is the storage of the object that a call is for. It is synchronous. A
// method panics with storage.ErrStorage if the storage fails.
type Storage struct{ call int32 }

// checked returns n. It panics if the storage has failed, which has then changed
// nothing.
func checked(n int32) int32 {
	if n == contract.StorageFault {
		panic(storage.ErrStorage)
	}
	return n
}

// Get returns the value of a key and whether there is one.
func (s Storage) Get(key string) ([]byte, bool) {
	buf := make([]byte, 2048)
	n := checked(hostStorageGet(s.call, sptr(key), int32(len(key)), ptr(buf), int32(len(buf))))
	if n == contract.Missing {
		return nil, false
	}
	if int(n) > len(buf) {
		buf = make([]byte, n)
		checked(hostStorageGet(s.call, sptr(key), int32(len(key)), ptr(buf), n))
	}
	return buf[:n], true
}

// Write stores rows and sets the alarm in one transaction. A row without a value
// is deleted.
func (s Storage) Write(rows []storage.Row, alarm int64) {
	var buf []byte
	for _, r := range rows {
		n := int32(len(r.Value))
		if r.Value == nil {
			n = contract.DeletedRow
		}
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(r.Key)))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(n))
		buf = append(append(buf, r.Key...), r.Value...)
	}
	checked(hostStorageWrite(s.call, ptr(buf), int32(len(buf)), float64(alarm)))
}

// List returns up to limit rows whose keys begin with prefix, from the first key
// after start on. A limit of 0 means all.
func (s Storage) List(prefix, start string, limit int) []storage.Row {
	n := checked(hostStorageList(s.call, sptr(prefix), int32(len(prefix)), sptr(start), int32(len(start)), int32(limit)))
	if n == 0 {
		return nil
	}
	buf := make([]byte, n)
	hostStorageRows(ptr(buf))
	var rows []storage.Row
	for len(buf) >= 8 {
		k, v := binary.LittleEndian.Uint32(buf), binary.LittleEndian.Uint32(buf[4:])
		buf = buf[8:]
		rows = append(rows, storage.Row{Key: string(buf[:k]), Value: buf[k : k+v : k+v]})
		buf = buf[k+v:]
	}
	return rows
}

// SetAlarm sets the object's alarm.
func (s Storage) SetAlarm(at int64) { checked(hostStorageAlarm(s.call, float64(at))) }
