package service

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"weir/internal/golden"
)

// text returns a plan as one text.
func (p *Plan) text() []byte {
	var b strings.Builder
	for _, f := range p.Files {
		fmt.Fprintf(&b, "== %s\n%s", f.Path, f.Content)
	}
	for _, list := range []struct {
		name     string
		commands [][]string
	}{{"install", p.Install}, {"uninstall", p.Uninstall}, {"status", p.Status}} {
		fmt.Fprintf(&b, "== %s\n", list.name)
		for _, words := range list.commands {
			fmt.Fprintf(&b, "%q\n", words)
		}
	}
	fmt.Fprintf(&b, "== links\n%q\n== folders\n%q\n", p.Links, p.Folders)
	fmt.Fprintf(&b, "== next\n%s\n== stays\n%s\n", p.Next, p.Stays)
	return []byte(b.String())
}

func TestPlans(t *testing.T) {
	mac := Request{System: "darwin", Program: "/opt/homebrew/bin/weir", Home: "/Users/me", UID: 501, Args: []string{"--data=/Users/me/A & B"}}
	for name, r := range map[string]Request{
		"systemd-system":  {System: "linux", Program: "/opt/weir 1/weir"},
		"systemd-package": {System: "linux", Program: "/usr/bin/weir", Package: true},
		"systemd-user": {System: "linux", Program: "/home/me/.local/bin/weir", UID: 1000, Config: "/home/me/.config",
			Args: []string{"--listen=:8787", `--data=/home/me/my "100%" $data`}},
		"launchd": mac,
		"windows": {System: "windows", Program: `C:\Program Files\weir\weir.exe`, Args: []string{"--listen=:8787"}},
	} {
		p, err := r.Plan()
		if err != nil {
			t.Fatal(err)
		}
		golden.Bytes(t, name+".txt", p.text())
	}
	p, err := mac.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(p.Files[0].Content)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the property list is not XML: %v", err)
		}
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for want, r := range map[string]Request{
		"leave out --listen=:1":   {System: "linux", Program: "/usr/bin/weir", Args: []string{"--listen=:1"}},
		"may not read /root/weir": {System: "linux", Program: "/root/weir"},
		"without sudo":            {System: "darwin", Program: "/weir"},
		"no services for plan9 here; have the system start /weir serve": {System: "plan9", Program: "/weir"},
	} {
		if _, err := r.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
