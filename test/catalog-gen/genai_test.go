package main

import (
	"encoding/json"
	"testing"
)

func TestGenaiPricesAreReadFromTheScript(t *testing.T) {
	raw, err := literal([]byte("x;const E=[{id:\"a\",free:!0,note:`two\nlines \"quoted\"`,models:["+
		`{id:"m",match:{or:[{equals:"M"},{regex:"^m-\\d$"}]},context_window:2e5,prices:{input_mtok:{base:.5,tiers:[{start:9,price:1}]},output_mtok:2,cache_read_mtok:.05}},`+
		`{id:"n",match:{and:[{starts_with:"n"},{regex:"^(?!.*-tts$)"}]},prices:[{prices:{input_mtok:1}},{constraint:{start_date:"2026-08-17"},prices:{input_mtok:2}},`+
		`{constraint:{start_time:"01:00:00Z",end_time:"04:00:00Z"},prices:{input_mtok:4}},{constraint:{start_date:"2027-01-01"},prices:{input_mtok:8}}]}]}],y`), `[{id:"a"`)
	if err != nil {
		t.Fatal(err)
	}
	var got []struct{ Models []genaiModel }
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	m, n := got[0].Models[0], got[0].Models[1]
	for id, want := range map[string][2]bool{"m": {true, false}, "m-1": {true, false}, "m-x": {}, "n-1": {false, true}, "n-1-tts": {}} {
		if is := [2]bool{m.Match.matches(id), n.Match.matches(id)}; is != want {
			t.Errorf("%s matches %v, want %v", id, is, want)
		}
	}
	if m.Context != 200_000 || m.Prices.text() != "0.5/2/0.05 >9=1/2/0.05" || n.Prices.text() != "2/0" {
		t.Errorf("%+v, %s, %s", m, m.Prices.text(), n.Prices.text())
	}
}
