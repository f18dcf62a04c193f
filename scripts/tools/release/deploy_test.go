package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

type composeFile struct {
	Services map[string]composeService
	Volumes  map[string]any
	Networks map[string]any
}

type composeService struct {
	Image       string
	PullPolicy  string `yaml:"pull_policy"`
	StopGrace   string `yaml:"stop_grace_period"`
	Environment map[string]string
	Volumes     []string
	Ports       []string
	Networks    []string
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	ReadOnly    bool                                  `yaml:"read_only"`
	CapDrop     []string                              `yaml:"cap_drop"`
	CapAdd      []string                              `yaml:"cap_add"`
	SecurityOpt []string                              `yaml:"security_opt"`
	Privileged  bool
	User        string
}

func TestComposeFileRunsTheImageBehindATLSFront(t *testing.T) {
	text := released(t).file(t, "compose.yaml")
	var c composeFile
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	weir, caddy := c.Services["weir"], c.Services["caddy"]
	if len(c.Services) != 2 {
		t.Errorf("%d services", len(c.Services))
	}
	image := imageOf(t, platformTar())
	if weir.Image != "weir:"+version || weir.PullPolicy != "never" {
		t.Errorf("image is %s, pulled %s", weir.Image, weir.PullPolicy)
	}
	if !slices.Equal(weir.Healthcheck.Test, image.config.Config.Healthcheck.Test) {
		t.Errorf("health check is %v, that of the image %v", weir.Healthcheck.Test, image.config.Config.Healthcheck.Test)
	}
	if !slices.Equal(weir.Volumes, []string{"data:/data"}) || weir.StopGrace == "" {
		t.Errorf("volumes are %v, a stop takes %q", weir.Volumes, weir.StopGrace)
	}
	if len(weir.Ports) > 0 || weir.User != "" {
		t.Error("weir is reached by Caddy alone, as the user of the image")
	}
	if got := caddy.DependsOn["weir"].Condition; got != "service_healthy" {
		t.Errorf("Caddy starts when weir is %q", got)
	}
	if !slices.Contains(caddy.Ports, "443:443") || !slices.Contains(caddy.Volumes, "./Caddyfile:/etc/caddy/Caddyfile:ro") {
		t.Errorf("Caddy has ports %v and volumes %v", caddy.Ports, caddy.Volumes)
	}
	for name, s := range c.Services {
		if !s.ReadOnly || s.Privileged || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		for _, n := range s.Networks {
			if _, ok := c.Networks[n]; !ok {
				t.Errorf("%s: no network %s", name, n)
			}
		}
		for _, v := range s.Volumes {
			if source, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(source, ".") {
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s: no volume %s", name, source)
				}
			}
		}
		for v := range s.Environment {
			if regexp.MustCompile(`TOKEN|SECRET|KEY|OAUTH`).MatchString(v) {
				t.Errorf("%s has the secret %s in its environment", name, v)
			}
		}
	}
	if len(weir.CapAdd) > 0 || !slices.Equal(caddy.CapAdd, []string{"NET_BIND_SERVICE"}) {
		t.Errorf("capabilities are %v and %v", weir.CapAdd, caddy.CapAdd)
	}
	front := released(t).file(t, "Caddyfile")
	if !bytes.Contains(front, []byte("{$WEIR_HOST} {")) || !bytes.Contains(front, []byte("reverse_proxy weir:8787")) {
		t.Errorf("the Caddyfile does not pass WEIR_HOST to weir:8787:\n%s", front)
	}
}

// unit returns a copy of the systemd unit that starts the program of the release.
func unit(t *testing.T) string {
	t.Helper()
	files := released(t).unpack(t, hostTarget())
	dir := t.TempDir()
	bin, path := filepath.Join(dir, "weir"), filepath.Join(dir, "weir.service")
	const installed = "\nExecStart=/usr/local/bin/weir "
	if !bytes.Contains(files["weir.service"], []byte(installed)) {
		t.Fatal("the unit does not start /usr/local/bin/weir")
	}
	text := bytes.Replace(files["weir.service"], []byte(installed), []byte("\nExecStart="+bin+" "), 1)
	if err := os.WriteFile(bin, files["weir"], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func systemdAnalyze(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestSystemdUnitIsValid(t *testing.T) {
	if out := systemdAnalyze(t, "verify", "--man=no", unit(t)); strings.Contains(out, "weir.service:") {
		t.Error(out)
	}
}

// The exposure is on a scale from 0 to 10; a unit without any confinement has 9.6.
func TestSystemdUnitIsConfined(t *testing.T) {
	systemdAnalyze(t, "security", "--offline=true", "--threshold=15", unit(t))
	text := string(released(t).unpack(t, hostTarget())["weir.service"])
	for _, line := range []string{
		"DynamicUser=yes", "StateDirectory=weir", "UMask=0077", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes",
		"PrivateDevices=yes", "CapabilityBoundingSet=", "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service",
		"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "Environment=DATA_DIR=%S/weir",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the unit has no line %s", line)
		}
	}
}
