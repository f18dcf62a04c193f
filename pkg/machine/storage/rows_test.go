package storage_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// collection is one of the lists of a machine whose order is that of creation.
type collection struct {
	name string
	put  func(tx *storage.Tx, id string, seq int64) (got int64)
	list func(tx *storage.Tx) (ids []string)
}

var collections = []collection{
	{"connections", func(tx *storage.Tx, id string, seq int64) int64 {
		c := storage.Connection{Connection: store.Connection{ID: id}, Given: storage.Given{Own: storage.Own{Seq: seq}}}
		tx.PutConnection(&c)
		return c.Seq
	}, func(tx *storage.Tx) (ids []string) {
		for _, c := range tx.Connections() {
			ids = append(ids, c.ID)
		}
		return ids
	}},
	{"keys", func(tx *storage.Tx, id string, seq int64) int64 {
		k := storage.Key{Key: store.Key{ID: id}, Own: storage.Own{Seq: seq}}
		tx.PutKey(&k)
		return k.Seq
	}, func(tx *storage.Tx) (ids []string) {
		for _, k := range tx.Keys() {
			ids = append(ids, k.ID)
		}
		return ids
	}},
	{"combos", func(tx *storage.Tx, id string, seq int64) int64 {
		c := storage.Combo{Combo: store.Combo{ID: id}, Own: storage.Own{Seq: seq}}
		tx.PutCombo(&c)
		return c.Seq
	}, func(tx *storage.Tx) (ids []string) {
		for _, c := range tx.Combos() {
			ids = append(ids, c.ID)
		}
		return ids
	}},
	{"custom models", func(tx *storage.Tx, id string, seq int64) int64 {
		c := storage.CustomModel{CustomModel: store.CustomModel{ID: id}, Own: storage.Own{Seq: seq}}
		tx.PutCustom(&c)
		return c.Seq
	}, func(tx *storage.Tx) (ids []string) {
		for _, c := range tx.CustomModels() {
			ids = append(ids, c.ID)
		}
		return ids
	}},
	{"disabled models", func(tx *storage.Tx, id string, seq int64) int64 {
		d := storage.DisabledModels{DisabledModels: store.DisabledModels{ProviderAlias: id}, Own: storage.Own{Seq: seq}}
		tx.PutDisabled(&d)
		return d.Seq
	}, func(tx *storage.Tx) (ids []string) {
		for _, d := range tx.Disabled() {
			ids = append(ids, d.ProviderAlias)
		}
		return ids
	}},
}

func TestCollectionsAreInTheOrderOfTheirCreation(t *testing.T) {
	for _, c := range collections {
		tx := at(objects.NewStorage(), noon)
		for i, id := range []string{"b", "c", "a"} {
			if seq := c.put(tx, id, 0); seq != int64(i+1) {
				t.Errorf("%s: number %d, want %d", c.name, seq, i+1)
			}
		}
		if seq := c.put(tx, "b", 1); seq != 1 { // changed
			t.Errorf("%s: a change moves 1 to %d", c.name, seq)
		}
		if got := c.list(tx); !slices.Equal(got, []string{"b", "c", "a"}) {
			t.Errorf("%s: in the order %v", c.name, got)
		}
	}
}

func TestDigestIsOfThePartsAndTheirLengths(t *testing.T) {
	parts := []string{strings.Repeat("x", 1<<24+2<<16+3<<8+4), "", "y"}
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		h.Write([]byte(p))
	}
	if got, want := storage.DigestOf(parts...), hex.EncodeToString(h.Sum(nil))[:40]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCustomModelWithoutATypeIsALanguageModel(t *testing.T) {
	if storage.CustomModelKey("", "up", "m") != storage.CustomModelKey("llm", "up", "m") {
		t.Error("no type is another key")
	}
	if storage.CustomModelKey("image", "up", "m") == storage.CustomModelKey("llm", "up", "m") {
		t.Error("another type is the same key")
	}
}

func TestReplicaHasEveryAlias(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	tx.PutAlias(&storage.Alias{Alias: "a", Model: "up/a"})
	tx.PutAlias(&storage.Alias{Alias: "b", Model: "up/b"})
	if got := tx.Replica().ModelAliases; len(got) != 2 || got["a"] != "up/a" || got["b"] != "up/b" {
		t.Errorf("got %v", got)
	}
}

func TestWipeLeavesTheMachinesOwnRows(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Create("demo")
	tx.PutConnection(&storage.Connection{Connection: store.Connection{ID: "a"}})
	tx.Due = false
	tx.Put(storage.SeenRow, []string{"digest"})
	tx.Put(storage.HealthPrefix+"a", storage.Health{At: noon})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx.Wipe()
	var left []string
	for _, r := range tx.List("") {
		left = append(left, r.Key)
	}
	if !slices.Equal(left, []string{"meta", storage.SeenRow}) {
		t.Errorf("left %v", left)
	}
}

func TestKeyThatMayManage(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  store.Key
		want bool
	}{
		{"without end", store.Key{ID: "k", Scopes: []string{"chat", "manage"}}, true},
		{"before its end", store.Key{ID: "k", Scopes: []string{"manage"}, ExpiresAt: noon + 1}, true},
		{"at its end", store.Key{ID: "k", Scopes: []string{"manage"}, ExpiresAt: noon}, false},
		{"revoked", store.Key{ID: "k", Scopes: []string{"manage"}, RevokedAt: noon - 1}, false},
		{"without the scope", store.Key{ID: "k", Scopes: []string{"chat"}}, false},
		{"not an id", store.Key{ID: "k/1", Scopes: []string{"manage"}}, false},
	} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.KeyPrefix+tt.key.ID, storage.Key{Key: tt.key})
		if k, ok := tx.ManageKey(tt.key.ID); ok != tt.want || ok && k.ID != tt.key.ID {
			t.Errorf("%s: got %+v, %v", tt.name, k, ok)
		}
	}
	if _, ok := at(objects.NewStorage(), noon).ManageKey("unknown"); ok {
		t.Error("an unknown key may manage")
	}
}

func TestColdRows(t *testing.T) {
	for key, cold := range map[string]bool{"meta": false, "activity": false, "requests": false, "requests:7": true,
		"usage:2026-11-28:1": true, "usages:2026-11-28": false, "audit:1": true, "key:1": false, "keyuse:1": false} {
		if storage.IsCold(key) != cold {
			t.Errorf("%s: cold is %t", key, !cold)
		}
	}
	for prefix, cold := range map[string]bool{"": true, "u": true, "usage:2026": true, "requests": true, "conn:": false} {
		if storage.HasCold(prefix) != cold {
			t.Errorf("prefix %q: cold is %t", prefix, !cold)
		}
	}
	before := []byte(`{"generation":3,"observed":5,"seq":1}`)
	for after, news := range map[string]bool{`{"generation":3,"observed":5,"seq":2}`: false, `{"generation":4,"observed":5}`: true,
		`{"generation":3,"observed":6}`: true, `{}`: true} {
		if storage.IsNews(before, []byte(after)) != news {
			t.Errorf("%s: news is %t", after, !news)
		}
	}
}
