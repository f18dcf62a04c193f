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
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// project reads a compose file of the release as Docker does, with the schema.
func project(t *testing.T, file string, env map[string]string) (*types.Project, error) {
	t.Helper()
	return read(t, file, released(t).file(t, file), env)
}

func read(t *testing.T, file string, text []byte, env map[string]string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: text}},
		Environment: env,
	})
}

func TestComposeFileRunsTheImageBehindATLSFront(t *testing.T) {
	if _, err := project(t, "compose.yaml", nil); err == nil || !strings.Contains(err.Error(), "WEIR_HOST") {
		t.Errorf("without WEIR_HOST the error is %v", err)
	}
	c, err := project(t, "compose.yaml", map[string]string{"WEIR_HOST": "weir.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	weir, caddy := c.Services["weir"], c.Services["caddy"]
	if len(c.Services) != 2 {
		t.Errorf("services are %v", c.ServiceNames())
	}
	config := imageOf(t, platformTar()).config.Config
	if weir.Image != "weir:"+version || weir.PullPolicy != types.PullPolicyNever {
		t.Errorf("image is %s, pulled %s", weir.Image, weir.PullPolicy)
	}
	if check := weir.HealthCheck; !slices.Equal(check.Test, config.Healthcheck.Test) || time.Duration(*check.Interval) != config.Healthcheck.Interval {
		t.Errorf("health check is %v every %v, that of the image %+v", check.Test, check.Interval, config.Healthcheck)
	}
	if v := weir.Volumes; len(v) != 1 || v[0].Type != types.VolumeTypeVolume || v[0].Source != "data" || v[0].Target != "/data" {
		t.Errorf("volumes are %+v", v)
	}
	if weir.StopGracePeriod == nil || time.Duration(*weir.StopGracePeriod) <= 30*time.Second {
		t.Errorf("a stop takes %v, but streams have 30 s", weir.StopGracePeriod)
	}
	if len(weir.Ports) > 0 || weir.User != "" || weir.NetworkMode != "" {
		t.Error("weir is not reached by Caddy alone, or runs as another user than the image's")
	}
	if got := *weir.Environment["PUBLIC_URL"]; got != "https://weir.example.com" {
		t.Errorf("PUBLIC_URL is %s", got)
	}
	subnet := c.Networks["front"].Ipam.Config[0].Subnet
	if got := *weir.Environment["TRUSTED_PROXIES"]; got != subnet || !slices.Equal(weir.NetworksByPriority(), []string{"front"}) {
		t.Errorf("trusted proxies are %s, the network is %s", got, subnet)
	}
	if got := caddy.DependsOn["weir"].Condition; got != types.ServiceConditionHealthy {
		t.Errorf("Caddy starts when weir is %q", got)
	}
	published := func(p types.ServicePortConfig) bool {
		return p.Published == "443" && p.Target == 443 && p.Protocol == "tcp"
	}
	mounted := func(v types.ServiceVolumeConfig) bool {
		return filepath.Base(v.Source) == "Caddyfile" && v.Target == "/etc/caddy/Caddyfile" && v.ReadOnly
	}
	if !slices.ContainsFunc(caddy.Ports, published) || !slices.ContainsFunc(caddy.Volumes, mounted) {
		t.Errorf("Caddy has ports %+v and volumes %+v", caddy.Ports, caddy.Volumes)
	}
	checkConfined(t, c)
	if len(weir.CapAdd) > 0 || !slices.Equal(caddy.CapAdd, []string{"NET_BIND_SERVICE"}) {
		t.Errorf("capabilities are %v and %v", weir.CapAdd, caddy.CapAdd)
	}
	front := released(t).file(t, "Caddyfile")
	if !bytes.Contains(front, []byte("{$WEIR_HOST} {")) || !bytes.Contains(front, []byte("reverse_proxy weir:8787")) {
		t.Errorf("the Caddyfile does not pass WEIR_HOST to weir:8787:\n%s", front)
	}
}

// A release whose image is in a registry needs no docker load.
func TestComposeFilesNameTheImageOfTheRegistry(t *testing.T) {
	r := &release{root: sources, out: t.TempDir(), version: "v1.2.0", image: "ghcr.io/owner/weir"}
	if err := r.writeCompose(); err != nil {
		t.Fatal(err)
	}
	for file, service := range map[string]string{"compose.yaml": "weir", "compose-several.yaml": "weir-1"} {
		text := r.file(t, file)
		c, err := read(t, file, text, map[string]string{"WEIR_HOST": "weir.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		if weir := c.Services[service]; weir.Image != "ghcr.io/owner/weir:v1.2.0" || weir.PullPolicy != "" || bytes.Contains(text, []byte("docker load")) {
			t.Errorf("%s: image is %s, pulled %s\n%.600s", file, weir.Image, weir.PullPolicy, text)
		}
	}
	for _, bad := range []string{"", "Weir", "ghcr.io/Owner/weir", "weir:v1", "a b", "https://ghcr.io/owner/weir"} {
		r := &release{root: sources, out: t.TempDir(), version: "v1", npm: "weir", image: bad}
		if err := r.build(); err == nil || !strings.Contains(err.Error(), "the image is") {
			t.Errorf("image %q: %v", bad, err)
		}
	}
}

// checkConfined fails for a service with rights or secrets that it does not need.
func checkConfined(t *testing.T, c *types.Project) {
	t.Helper()
	secret := regexp.MustCompile(`(TOKEN|SECRET|KEY|OAUTH|PASSWORD|URL)[A-Z_]*$`)
	for name, s := range c.Services {
		own := name != "database" // whose image changes its user
		if s.Privileged || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || own && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"})) {
			t.Errorf("%s is not confined", name)
		}
		for v := range s.Environment {
			if secret.MatchString(v) && !strings.HasSuffix(v, "_FILE") && v != "PUBLIC_URL" {
				t.Errorf("%s has the secret %s in its environment", name, v)
			}
		}
	}
}

func TestComposeFileRunsTwoServersOverPostgreSQL(t *testing.T) {
	const file = "compose-several.yaml"
	c, err := project(t, file, map[string]string{"WEIR_HOST": "weir.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	checkConfined(t, c)
	if got := c.ServiceNames(); !slices.Equal(got, []string{"caddy", "database", "weir-1", "weir-2"}) {
		t.Fatalf("services are %v", got)
	}
	front := string(released(t).file(t, "Caddyfile-several"))
	for _, name := range []string{"weir-1", "weir-2"} {
		weir := c.Services[name]
		if weir.Image != "weir:"+version || weir.PullPolicy != types.PullPolicyNever || len(weir.Ports) > 0 {
			t.Errorf("%s has image %s, ports %v", name, weir.Image, weir.Ports)
		}
		if weir.StopGracePeriod == nil || time.Duration(*weir.StopGracePeriod) <= 30*time.Second {
			t.Errorf("a stop takes %v, but streams have 30 s", weir.StopGracePeriod)
		}
		for _, s := range weir.Secrets {
			variable := strings.ToUpper(strings.ReplaceAll(s.Source, "-", "_")) + "_FILE"
			if path := weir.Environment[variable]; path == nil || *path != "/run/secrets/"+s.Source {
				t.Errorf("%s does not read the secret %s", name, s.Source)
			}
		}
		if len(weir.Secrets) != 4 || c.Networks["front"].Ipam.Config[0].Subnet != *weir.Environment["TRUSTED_PROXIES"] {
			t.Errorf("%s has the secrets %v and trusts %s", name, weir.Secrets, *weir.Environment["TRUSTED_PROXIES"])
		}
		for dependency, of := range map[string]types.ServiceConfig{"database": weir, name: c.Services["caddy"]} {
			if of.DependsOn[dependency].Condition != types.ServiceConditionHealthy {
				t.Errorf("%s does not wait for %s", of.Name, dependency)
			}
		}
		if !strings.Contains(front, name+":8787") {
			t.Errorf("Caddy does not send calls to %s", name)
		}
	}
	if database := c.Services["database"]; len(database.Ports) > 0 || !c.Networks["back"].Internal || len(database.Networks) != 1 {
		t.Error("the database can be reached from outside")
	}
	for _, line := range []string{"flush_interval -1", "health_uri /health/ready", "lb_try_duration 5s"} {
		if !strings.Contains(front, line) {
			t.Errorf("the Caddyfile has no line %s", line)
		}
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
	if err := os.WriteFile(filepath.Join(dir, "weir.socket"), files["weir.socket"], 0o644); err != nil {
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
	service := unit(t)
	out := systemdAnalyze(t, "verify", "--man=no", service, strings.TrimSuffix(service, "service")+"socket")
	if strings.Contains(out, "weir.service:") || strings.Contains(out, "weir.socket:") {
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
