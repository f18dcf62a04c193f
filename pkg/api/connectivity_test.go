package api

import "testing"

func TestConnectionTestTakesOnlyAModel(t *testing.T) {
	for body, want := range map[string]string{
		``: "", `{}`: "", `{"model":"m"}`: "m", `{"model":""}`: "",
		`[]`: "refused", `null`: "refused", `"m"`: "refused", `{"model":1}`: "refused", `{"model":null}`: "refused", `{"Model":"m"}`: "refused", `{"model":"m","model":"n"}`: "refused",
		`{"model":"m"}{}`: "refused", `{"model":"m","x":1}`: "refused", `{"model":"../x"}`: "refused", `{"model":"a\u0000"}`: "refused",
	} {
		got, err := testModel([]byte(body))
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
