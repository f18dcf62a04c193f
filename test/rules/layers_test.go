package rules

import (
	"slices"
	"strings"
	"testing"
)

// layers are the folders of pkg/ in the order in which data flows through them,
// docs/architecture.md: a package imports packages of its own layer and of
// those below it in this list. A folder holds the packages under it that no
// other line names.
var layers = [][]string{
	{"gateway"},
	{"v1", "v1beta", "api"},
	{"llm/proxy"},
	{"endpoint"},
	{"auth"},
	{"accounts"},
	{"routing"},
	{"snapshot"},
	{"machine/tokens"},
	{"machine/storage"},
	{"machine/rpc"},
	{"budget"},
	{"usage"},
	{"catalog/refresh"},
	{"provider"},
	{"store"},
	{"credentials"},
	{"llm"},
	{"catalog", "people", "setup"},
	{"wire"},
}

// The object of a machine stands beside the gateway, which wires it: no other
// package of pkg/ imports it. It uses what its layer would.
const object, objectLayer = "machine", "endpoint"

// layerOf returns the layer of a package of pkg/, and the folder that names it.
func layerOf(path string) (layer int, folder string) {
	layer = -1
	for i, folders := range layers {
		for _, f := range append(slices.Clone(folders), object) {
			if (path == f || strings.HasPrefix(path, f+"/")) && len(f) > len(folder) {
				layer, folder = i, f
			}
		}
	}
	if folder == object {
		layer, _ = layerOf(objectLayer)
	}
	return layer, folder
}

// allowed reports whether one package of pkg/ may import another.
func allowed(from, to string) bool {
	a, inFolder := layerOf(from)
	b, folder := layerOf(to)
	if folder == object {
		return inFolder == object || from == "gateway"
	}
	// Only the object touches its rows.
	if (folder == "machine/storage" || folder == "machine/tokens") && from != "gateway" && !strings.HasPrefix(from, object) {
		return false
	}
	return a >= 0 && b >= a
}

func TestImportsRunDownTheLayers(t *testing.T) {
	checked := 0
	for _, p := range list(t, "./pkg/...") {
		from, ok := strings.CutPrefix(p.path, "weir/pkg/")
		if !ok {
			continue
		}
		if layer, _ := layerOf(from); layer < 0 {
			t.Errorf("pkg/%s has no layer", from)
			continue
		}
		checked++
		for _, i := range p.imports {
			to, ok := strings.CutPrefix(i, "weir/")
			if !ok {
				continue
			}
			if to, ok = strings.CutPrefix(to, "pkg/"); !ok || !allowed(from, to) {
				t.Errorf("pkg/%s imports weir/%s, which is not below it", from, strings.TrimPrefix(i, "weir/"))
			}
		}
	}
	if checked < 20 {
		t.Fatalf("only %d packages checked", checked)
	}
}

func TestLayerRule(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"gateway", "v1/web", true}, {"v1/web", "gateway", false}, {"v1/web", "v1/models", true}, {"api", "v1/models", true},
		{"llm/proxy", "llm/ir", true}, {"llm/ir", "llm/proxy", false}, {"llm/chat", "llm/ir", true}, {"llm/chat", "store", false},
		{"accounts", "machine/rpc", true}, {"accounts", "machine", false}, {"v1/videos", "machine", false}, {"v1/videos", "machine/storage", false},
		{"gateway", "machine", true}, {"machine", "machine/manage", true}, {"api", "machine/manage", false}, {"machine", "machine/storage", true}, {"machine/storage", "machine/rpc", true},
		{"api", "machine/storage", false}, {"api", "machine", false}, {"machine/storage", "api", false}, {"machine/tokens", "machine/storage", true}, {"machine/rpc", "machine", false}, {"machine/rpc", "usage", true}, {"machine", "gateway", false}, {"wire/sse", "catalog", false},
		{"store", "credentials/oauth", true}, {"credentials/oauth", "store", false}, {"new", "wire/sse", false}, {"gateway", "internal/golden", false},
	} {
		if got := allowed(tt.from, tt.to); got != tt.want {
			t.Errorf("%s imports %s: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

// serverLayers are the packages of server/: one imports those of the layers below
// its own. The first and the last layer import nothing of pkg/.
var serverLayers = [][]string{
	{"server"},
	{"server/program"},
	{"server/cli", "server/dial", "server/host", "server/objects"},
	{"server/postgres"},
	{"server/store"},
	{"server/dashboard", "server/gctune", "server/jwk", "server/service", "server/upgrade"},
}

// allowedInServer reports whether a package of server/ may import another of this
// module.
func allowedInServer(from, to string) bool {
	layer := func(path string) int {
		return slices.IndexFunc(serverLayers, func(l []string) bool { return slices.Contains(l, path) })
	}
	a, b := layer(from), layer(to)
	if to == "deploy" { // the units, which are installed
		return from == "server/service"
	}
	if strings.HasPrefix(to, "pkg/") {
		if from == "server/cli" { // which calls the API; of the program it has the tables
			return to == "pkg/provider" || to == "pkg/catalog" || to == "pkg/setup"
		}
		return a > 0 && a < len(serverLayers)-1
	}
	return a >= 0 && b > a
}

func TestImportsOfTheServerRunDownItsLayers(t *testing.T) {
	checked := 0
	for _, p := range list(t, "./server/...") {
		from, ok := strings.CutPrefix(p.path, "weir/")
		if !ok || !strings.HasPrefix(from, "server") || strings.HasSuffix(from, "test") {
			continue
		}
		checked++
		for _, i := range p.imports {
			if to, ok := strings.CutPrefix(i, "weir/"); ok && !allowedInServer(from, to) {
				t.Errorf("%s imports %s, which is not below it", from, to)
			}
		}
	}
	if checked < 8 {
		t.Fatalf("only %d packages checked", checked)
	}
}

func TestServerLayerRule(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"server", "server/program", true}, {"server", "pkg/gateway", false}, {"server/program", "server/host", true}, {"server/host", "server/program", false},
		{"server/host", "server/objects", false}, {"server/objects", "server/store", true}, {"server/store", "pkg/machine", true}, {"server/gctune", "pkg/gateway", false},
		{"server/host", "pkg/gateway", true}, {"server/dashboard", "pkg/wire/httpmsg", false}, {"server/cli", "pkg/store", false}, {"server/cli", "server/program", false}, {"server/host", "worker/bridge", false}, {"server/program", "internal/golden", false},
		{"server/program", "test/native", false}, {"server/new", "server/dial", false}, {"server/program", "server/dial/dnstest", false},
	} {
		if got := allowedInServer(tt.from, tt.to); got != tt.want {
			t.Errorf("%s imports %s: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}
