package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"

	"weir/pkg/machine/storage"
)

// rows is the storage.Storage of one machine.
type rows struct {
	s  *Store
	id string
}

// failed returns the error of a storage that fails with err, nil for none.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", storage.ErrStorage, err)
}

// bucket returns the machine's rows, or nil.
func (r rows) bucket(tx *bolt.Tx) *bolt.Bucket {
	return tx.Bucket([]byte(machineBucket)).Bucket([]byte(r.id))
}

// Get returns the value of a key, nil if it is missing.
func (r rows) Get(key string) (value []byte, err error) {
	err = r.s.view(func(tx *bolt.Tx) error {
		b := r.bucket(tx)
		if b == nil {
			return nil
		}
		sealed := b.Get([]byte(key))
		if sealed == nil {
			return nil
		}
		v, err := openRow(r.id, key, sealed)
		if err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		value = append(make([]byte, 0, len(v)), v...)
		return nil
	})
	return value, failed(err)
}

// List returns up to limit rows whose key begins with prefix and sorts after
// start, in order. A limit of 0 means all.
func (r rows) List(prefix, start string, limit int) (list []storage.Row, err error) {
	err = r.s.view(func(tx *bolt.Tx) error {
		b := r.bucket(tx)
		if b == nil {
			return nil
		}
		c := b.Cursor()
		k, sealed := c.Seek([]byte(max(prefix, start)))
		if start != "" && string(k) == start {
			k, sealed = c.Next()
		}
		for ; k != nil && bytes.HasPrefix(k, []byte(prefix)); k, sealed = c.Next() {
			key := string(k)
			v, err := openRow(r.id, key, sealed)
			if err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
			list = append(list, storage.Row{Key: key, Value: append(make([]byte, 0, len(v)), v...)})
			if limit > 0 && len(list) == limit {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed(err)
	}
	return list, nil
}

// Write stores rows and sets the alarm. It returns when they are durable.
func (r rows) Write(list []storage.Row, alarm int64) error {
	if len(list) == 0 && alarm == storage.KeepAlarm {
		return nil
	}
	return failed(r.s.write(&write{id: r.id, rows: list, alarm: alarm}))
}

// checksums is the table of CRC-32C, which processors compute.
var checksums = crc32.MakeTable(crc32.Castagnoli)

const sumSize = 4 // bytes before each value

func checksum(bucket, key string, value []byte) uint32 {
	sum := crc32.Update(0, checksums, []byte(bucket))
	sum = crc32.Update(sum, checksums, []byte{0})
	sum = crc32.Update(sum, checksums, []byte(key))
	sum = crc32.Update(sum, checksums, []byte{0})
	return crc32.Update(sum, checksums, value)
}

// sealRow returns a value as it is stored: after a checksum of it, its key and
// the name of its bucket. The database has none of its own.
func sealRow(bucket, key string, value []byte) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, sumSize+len(value)), checksum(bucket, key, value))
	return append(b, value...)
}

// openRow returns the value in a stored one, in the same memory.
func openRow(bucket, key string, sealed []byte) ([]byte, error) {
	if len(sealed) < sumSize || binary.BigEndian.Uint32(sealed) != checksum(bucket, key, sealed[sumSize:]) {
		return nil, fmt.Errorf("wrong checksum of row %q of %q", key, bucket)
	}
	return sealed[sumSize:], nil
}
