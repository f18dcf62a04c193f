package accounts

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsoncodec"
)

func TestTagsOfARequest(t *testing.T) {
	long := strings.Repeat("l", store.MaxTag)
	for _, tt := range []struct {
		name   string
		key    []string
		header string
		want   []string
	}{
		{"none", nil, "", nil},
		{"of the client", nil, " project=a, nightly ,,project=a", []string{"project=a", "nightly"}},
		{"the first value of a name counts", nil, "project=a,project=b,project", []string{"project=a"}},
		{"too long", nil, "a=1," + long + "x," + long, []string{"a=1", long}},
		{"not ASCII, and not UTF-8", nil, "Projekt=Jörg,a=\xff\xfe,b=\xc3", []string{"Projekt=Jörg"}},
		{"too many", nil, "1,2,3,4,5,6,7,8,9", []string{"1", "2", "3", "4", "5", "6", "7", "8"}},
		{"of the key", []string{"project=atlas"}, "", []string{"project=atlas"}},
		{"the client cannot override them", []string{"project=atlas"}, "project=other, project =x,project,team=b",
			[]string{"project=atlas", "team=b"}},
		{"nor say whose the call is", nil, "person=p_1, person =p_2,person,team=b", []string{"team=b"}},
		{"which the key says", []string{"person=p_1"}, "person=p_2", []string{"person=p_1"}},
		{"nor push them out", []string{"z=1"}, "1,2,3,4,5,6,7,8,9", []string{"z=1", "1", "2", "3", "4", "5", "6", "7"}},
	} {
		m := snapshot.New(&store.Machine{ID: "m", Keys: []store.Key{{ID: "k1", Tags: tt.key}, {ID: "k2", Tags: []string{"x=1"}}}})
		r := &httpmsg.Request{Header: httpmsg.Header{{Name: "x-weir-tags", Value: tt.header}}}
		for range 2 { // the second time they are known
			trace := Trace{KeyID: "k1"}
			if got := trace.Tags(m, r); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		if got := m.KeyTags("k1"); !slices.Equal(got, tt.key) {
			t.Errorf("%s: the key has %q", tt.name, got)
		}
	}
}

// The network of a client is reported with its key, country and tool, and never its address.
func TestNetworksOfAKeyAreReported(t *testing.T) {
	for _, tt := range []struct{ setting, key, address, country, want string }{
		{"", "k1", "203.0.113.77", "DE", `[{"keyId":"k1","network":"203.0.113.0/24","country":"DE","tools":["curl"],"firstAt":1800000000000,"lastAt":1800000000000,"requests":2}]`},
		{"on", "k1", "2001:db8:1:2::3", "XX", `[{"keyId":"k1","network":"2001:db8:1::/48","tools":["curl"],"firstAt":1800000000000,"lastAt":1800000000000,"requests":2}]`},
		{"off", "k1", "203.0.113.77", "DE", ""},
		{"", "", "203.0.113.77", "DE", ""},
		{"", "k1", "", "DE", ""},
		{"", "k1", "203.0.113.77, 10.0.0.1", "DE", ""},
	} {
		w := newWorld(t).add(accounts("a")...)
		rec := *w.machine.Machine
		rec.Settings.KeyNetworks = tt.setting
		w.use(&rec)
		h := httpmsg.Header{{Name: "user-agent", Value: "curl/8"}, {Name: "cf-connecting-ip", Value: tt.address}, {Name: "cf-ipcountry", Value: tt.country}}
		for range 2 {
			w.pool.Record(w.Now(), w.machine, &httpmsg.Request{Method: "POST", Route: "/v1/embeddings", Header: h, Start: w.Now()}, &Trace{KeyID: tt.key}, 200, nil)
		}
		w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, []byte("{}"), nil }
		w.pool.Flush(t.Context(), w.machine)
		report := w.object.Calls[len(w.object.Calls)-1]
		if got := gjson.Get(strings.TrimPrefix(report, "report "), "networks").Raw; got != tt.want || tt.address != "" && strings.Contains(report, tt.address) {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

func TestFieldsOfABodyAreTagsOfLeastWeight(t *testing.T) {
	m := snapshot.New(&store.Machine{ID: "m", Keys: []store.Key{{ID: "k1", Tags: []string{"project=key"}}}})
	r := &httpmsg.Request{Header: httpmsg.Header{{Name: "x-weir-tags", Value: "user=client"}}}
	trace := Trace{KeyID: "k1", FieldTags: []string{"project=body", "user=body", "user_id=u1"}}
	if got, want := trace.Tags(m, r), []string{"project=key", "user=client", "user_id=u1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A client that invents tags, user agents and addresses makes a report no larger than a bound.
func TestInventedTagsAndNetworksAreABoundedReport(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	const calls = 20_000
	sizes := map[int]int{}
	for i := range calls {
		n := strconv.Itoa(i)
		tags := "project=p" + n
		for j := range 7 {
			tags += ",n" + strconv.Itoa(i*7+j) + "=" + strings.Repeat("v", 40) + n
		}
		h := httpmsg.Header{{Name: "user-agent", Value: "tool-" + n}, {Name: "x-weir-tags", Value: tags},
			{Name: "cf-connecting-ip", Value: "2001:db8:" + strconv.FormatInt(int64(i), 16) + "::1"}}
		w.pool.Record(w.Now(), w.machine, &httpmsg.Request{Method: "POST", Route: "/v1/embeddings", Header: h}, &Trace{KeyID: "k1"}, 200, nil)
		if i == calls/2 || i == calls-1 {
			r := w.pool.reports[mid]
			raw, err := jsoncodec.Marshal(&rpc.Report{Labels: r.Labels, Networks: r.Networks})
			if err != nil {
				t.Fatal(err)
			}
			sizes[i] = len(raw)
			if len(r.Networks) > maxNetworks || len(raw) > 256<<10 {
				t.Fatalf("after %d calls: %d networks, %d bytes", i+1, len(r.Networks), len(raw))
			}
		}
	}
	if grown := sizes[calls-1] - sizes[calls/2]; grown > 1<<10 { // counts have more digits
		t.Errorf("the report has grown by %d bytes", grown)
	}
	var sum int64
	for _, l := range w.pool.reports[mid].Labels {
		if l.Is(usage.ByName, "project") {
			for i := range l.Rows {
				sum += l.Rows[i].Calls
			}
		}
	}
	if sum != calls {
		t.Errorf("%d of %d calls count", sum, calls)
	}
}
