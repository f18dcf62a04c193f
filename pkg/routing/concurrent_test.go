package routing

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// Calls that resolve the same model share what follows from it.
func TestConcurrentCallsShareTargets(t *testing.T) {
	const id = "openai/text-embedding-3-small"
	b := store.Budget{Models: []string{id}}
	for range 50 {
		m := snapshot.New(&store.Machine{
			ID: "m", Connections: []store.Connection{{ID: "c", Provider: "openai"}, {ID: "d", Provider: "openai"}},
			Settings: store.Settings{ModelPrices: map[string]string{"OpenAI/text-embedding-3-small": "3"}},
		})
		unpriced := snapshot.New(&store.Machine{ID: "m"})
		targets, err := Resolve(id, m, catalog.Embedding, nil)
		if err != nil || len(targets) != 1 {
			t.Fatalf("%v %v", targets, err)
		}
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				to := &slices.Clone(targets)[0]
				<-begin
				if !to.Charged(&b, "k", "other") || to.Price(m) != "3" {
					t.Errorf("the price is %q", to.Price(m))
				}
				if p := to.Price(unpriced); p == "" || p == "3" {
					t.Errorf("the price of the catalogue is %q", p)
				}
				for _, conn := range to.Connections {
					if _, url, err := to.Endpoint(conn, "embeddings"); err != nil || !strings.HasSuffix(url, "/embeddings") {
						t.Errorf("%s %v", url, err)
					}
				}
			})
		}
		close(begin)
		all.Wait()
	}
}
