//go:build js && wasm

package bridge

import (
	"encoding/binary"

	"weir/pkg/machine/storage"
	"weir/worker/contract"
)

// Storage is the storage of the object that a call is for. It is synchronous.
type Storage struct{ call int32 }

// Get returns the value of a key, nil if it is missing.
func (s Storage) Get(key string) ([]byte, error) {
	buf := make([]byte, 2048)
	for {
		switch n := hostStorageGet(s.call, sptr(key), int32(len(key)), ptr(buf), int32(len(buf))); {
		case n == contract.StorageFault:
			return nil, storage.ErrStorage
		case n == contract.Missing:
			return nil, nil
		case int(n) <= len(buf):
			return buf[:n], nil
		default:
			buf = make([]byte, n)
		}
	}
}

// Write stores rows and sets the alarm in one transaction. A row without a value
// is deleted.
func (s Storage) Write(rows []storage.Row, alarm int64) error {
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
	if hostStorageWrite(s.call, ptr(buf), int32(len(buf)), float64(alarm)) == contract.StorageFault {
		return storage.ErrStorage
	}
	return nil
}

// List returns up to limit rows whose keys begin with prefix, from the first key
// after start on. A limit of 0 means all.
func (s Storage) List(prefix, start string, limit int) ([]storage.Row, error) {
	n := hostStorageList(s.call, sptr(prefix), int32(len(prefix)), sptr(start), int32(len(start)), int32(limit))
	switch n {
	case contract.StorageFault:
		return nil, storage.ErrStorage
	case 0:
		return nil, nil
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
	return rows, nil
}
