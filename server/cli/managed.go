package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Owned are the rows of a machine that a file names: their ids by the path of the collection,
// or All.
type Owned map[string][]string

// All stands for all rows of a collection.
const All = "*"

// Applied is what a file has made of a machine.
type Applied struct {
	MachineID string
	Owned     Owned
	Changed   int // steps
}

// mostApplies bounds the plans of an ApplyFile: a client may change the machine meanwhile.
const mostApplies = 5

// ApplyFile makes a machine what a file says, through t, as the operator. Rows that before
// names and the file does not have are deleted, if their section is still in the file. Texts
// of keys that are created are not shown.
func ApplyFile(ctx context.Context, h Host, t http.RoundTripper, raw []byte, before Owned) (out Applied, err error) {
	p := &planner{app: &app{Host: h}, ctx: ctx, prune: true, only: before}
	if before == nil {
		p.only = Owned{}
	}
	if p.values, err = readFileText(raw); err == nil {
		err = p.unset(raw)
	}
	if err != nil {
		return out, err
	}
	p.client = newClient("http://weir", "", h.Version, t)
	p.client.name = "the server"
	machine, _ := p.values["machine"].(string)
	p.client.machine = cmp.Or(machine, p.variable("WEIR_MACHINE"))
	for range mostApplies {
		if err = p.plan(); err != nil || len(p.steps) == 0 {
			break
		}
		out.Changed += len(p.steps)
		if err = p.takeAll(); err != nil && !errors.Is(err, errStale) {
			break
		}
	}
	if err == nil && len(p.steps) > 0 {
		err = fmt.Errorf("after applying the file %d times the machine still differs from it", mostApplies)
	}
	if p.client.prefix != nil {
		out.MachineID = strings.TrimPrefix(*p.client.prefix, "/")
	}
	out.Owned = p.owned
	return out, err
}

// FilesOf returns the files that the references of a file name, each once. A file with a
// mistake has none.
func FilesOf(raw []byte) (files []string) {
	values, err := readFileText(raw)
	if err != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if name, ok := v["file"].(string); ok && len(v) == 1 && !slices.Contains(files, name) {
				files = append(files, name)
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(values)
	slices.Sort(files)
	return files
}
