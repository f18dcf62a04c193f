package api

import "testing"

func TestFormulasInCSVCellsBecomeTexts(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": `"'=1+1"`, "+1": `"'+1"`, "-1": `"'-1"`, "@SUM(A1)": `"'@SUM(A1)"`, "\t=1": "\"'\t=1\"", "\r1": "\"'\r1\"", "  =1": `"'  =1"`, "\uff1d1": "\"'\uff1d1\"",
		`plain "quoted", text`: `"plain ""quoted"", text"`, "up/model": `"up/model"`, "a=1": `"a=1"`, "": "",
	} {
		if got := string(appendCell(nil, text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
