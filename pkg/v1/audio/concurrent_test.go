package audio

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestConcurrentCallsCacheVoices(t *testing.T) {
	h := &Handler{Now: time.Now}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				key := voicesKey{strconv.Itoa(n), strconv.Itoa(i), 1}
				h.keepVoices(key, []Voice{{ID: key.machineID}})
				if l := h.cachedVoices(key); l != nil && l.voices[0].ID != key.machineID { // others may have made room
					t.Errorf("the voices of %s are those of %s", key.machineID, l.voices[0].ID)
				}
			}
		})
	}
	all.Wait()
	if len(h.voices) != maxVoiceLists {
		t.Errorf("%d lists are cached, want %d", len(h.voices), maxVoiceLists)
	}
}
