package cli_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/pkg/catalog"
)

// page says how the commands of a page of the documentation are run.
type page struct {
	// before are commands that run before the first block: what the reader has or has done by then.
	before string
	// then are those that run before the block that contains their key.
	then map[string]string
	// values are pairs: a text that the reader replaces, and its value.
	values []string
	// elsewhere is the test that runs the page.
	elsewhere string
}

// pages are those that need more than a gateway with an account and keys. In values {id} is the
// machine, {key} a key of it and {release} the address of a release.
var pages = map[string]page{
	"several-servers": {elsewhere: "../../test/cluster/guide_test.go"}, // needs PostgreSQL
	"README":          {values: []string{"https://github.com/OWNER/weir/releases/latest/download", "{release}"}},
	"quick-start": {values: []string{"https://github.com/OWNER/weir/releases/latest/download", "{release}",
		"weir accounts add openai  ", "echo sk-openai | weir accounts add openai  ",
		"PATH=$PWD/build:$PATH DATA_DIR=$PWD/.weir/serve/data WEIR_MACHINE=main", "PATH"}},
	"deploying":          {values: []string{"ADMIN_TOKEN=…", "ADMIN_TOKEN=" + token}},
	"log-export":         {before: "export AWS_ACCESS_KEY_ID=AKIA0123456789ABCDEF AWS_SECRET_ACCESS_KEY=secret"},
	"spend":              {before: laptop},
	"calls":              {before: "weir accounts add groq --api-key env:OPENAI_API_KEY"},
	"captured-bodies":    {before: laptop},
	"opentelemetry":      {values: []string{"Basic%20…", "Basic%20abcd"}},
	"leaked-token":       {before: laptop},
	"prices":             {before: "echo {} > prices.json"},
	"observability":      {before: "cp -r $REPO/deploy deploy", values: []string{"GRAFANA_PASSWORD=…", "GRAFANA_PASSWORD=secret"}},
	"configuration-file": {before: "cp first.yaml weir.yaml"},
	"self-hosting": {before: "unset PASSPHRASE; cp $REPO/deploy/compose.yaml .; mkdir backups; openssl req -x509 -newkey ed25519 -nodes -subj /CN=weir -keyout privkey.pem -out fullchain.pem",
		values: []string{"https://github.com/OWNER/weir/releases/latest/download", "{release}", ":443", "127.0.0.1:0", "/var/lib/weir", "$HOME/lib", "/backups/", "backups/", "DATA_DIR/secrets", "$DATA_DIR/secrets", "/safe/place/", "backups/",
			"OLD_ID=… OLD_ADMIN_TOKEN=…", "OLD_ID={id} OLD_ADMIN_TOKEN=" + token, "NEW_ID=… NEW_ADMIN_TOKEN=…", "NEW_ID={id} NEW_ADMIN_TOKEN=" + token},
		then: map[string]string{"machines add team --id": "weir machines rm main --now --yes"}},
}

// laptop adds a key of that name.
const laptop = "weir keys add laptop > laptop.key"

// chats makes a call with the base URL, the model and the key that are its arguments.
const chats = `curl -s $1/chat/completions -H "Authorization: Bearer $3" -H 'Content-Type: application/json' -d '{"model":"'$2'","messages":[{"role":"user","content":"a"}]}'`

// programs stand in for those that change this computer or reach others. Each checks that it is
// given what there is.
var programs = map[string]string{
	"weir": `case "$1" in
serve) WEIR_TEST_PROGRAM=` + starts + ` DATA_DIR=$HOME/other LISTEN=127.0.0.1:0 exec $EXE "$@" ;;
service | upgrade) exec $EXE "$@" --help ;; # server/program tests them: they change this computer
esac
exec $EXE "$@"`,
	"curl": `case "$*" in *http://127.0.0.1*) ;; *) exit 1 ;; esac
case " $* " in *\ -*f*\ *) ;; *) set -- --fail-with-body "$@" ;; esac
out=$($CURL "$@") || { code=$?; printf "%s\n" "$out"; exit $code; }
printf "%s\n" "$out"
case $out in *'"delivered":false'*) exit 1 ;; esac`,
	"sudo": `exec env "$@"`,
	"docker": `case "$*" in
load\ -i\ *.tar) exit ;;
run\ -p\ *:8787\ -v\ weir:/data\ ghcr.io/OWNER/weir) exec grep -q 'DATA_DIR=/data", "LISTEN=0.0.0.0:8787"' $REPO/scripts/tools/release/image.go ;;
esac
 test "$1" = compose -a -f compose.yaml -a "$2" = up -o "$(grep "^  $3:" compose.yaml)"`,
	"journalctl": `test "$1" = -u -a -f $REPO/deploy/$2.service`,
	"systemctl": `for unit; do case $unit in
*.*) test -f $REPO/deploy/$unit || exit 1 ;;
weir | stop | daemon-reload | enable | restart | --now) ;;
*) exit 1 ;;
esac; done`,
	"sqlite3": `test "$*" = "-json one-api.db select * from channels" && cat channels`,
	"install": `test "$1 $2" = "-m 644" -a -f $REPO/deploy/$3 -a -f $REPO/deploy/$4 -a "$5" = /etc/systemd/system/`,
	"npx":     `test "$*" = "wrangler login" -o "$*" = "wrangler secret put ADMIN_TOKEN"`,
	"git":     `case "$*" in clone*) mkdir weir && cp build.sh weir ;; "-C weir checkout v1.2.0") test -d weir ;; pull) ;; *) exit 1 ;; esac`,
	"build.sh": `test -f $REPO/scripts/$1.sh || exit
case $1 in
serve) mkdir -p .weir && echo '{"adminToken": "'$ADMIN_TOKEN'"}' > .weir/dev.json ;;
release) mkdir -p build/release && cp ../SHA256SUMS build/release ;;
esac`,
	"copilot": `set -- $COPILOT_PROVIDER_BASE_URL $COPILOT_MODEL $COPILOT_PROVIDER_API_KEY; ` + chats,
	"goose":   `test $GOOSE_PROVIDER = openai || exit; set -- $OPENAI_HOST/v1 $GOOSE_MODEL $OPENAI_API_KEY; ` + chats,
}

// The commands of each page work as they are written, one block after the other.
func TestCommandsOfThePagesWork(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	guides, _ := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(files) == 0 || len(guides) == 0 {
		t.Fatal(err)
	}
	left, all := maps.Clone(pages), ""
	for _, file := range append(append(files, guides...), "../../README.md") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, name := string(raw), strings.TrimSuffix(filepath.Base(file), ".md")
		if regexp.MustCompile("(?m)^ *```(bash|shell|console|zsh)$").MatchString(text) {
			t.Errorf("%s: the language of commands is sh", file)
		}
		blocks := regexp.MustCompile("(?ms)^ *```(sh|powershell)\n(.*?)^ *```").FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			continue
		}
		if name == "README" && file != "../../README.md" {
			t.Fatalf("two pages are called README")
		}
		p := pages[name]
		delete(left, name)
		for _, b := range blocks {
			all += b[2]
		}
		if p.elsewhere != "" {
			if raw, _ := os.ReadFile(p.elsewhere); !strings.Contains(string(raw), name+".md") {
				t.Errorf("%s is not run by %s", file, p.elsewhere)
			}
			continue
		}
		t.Run(name, func(t *testing.T) { p.run(t, name, text, blocks) })
	}
	for name := range left {
		t.Errorf("%s has no commands", name)
	}
	for name := range programs {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(all) {
			t.Errorf("no page calls %s", name)
		}
	}
}

// Readers call the models of the pages.
func TestModelsOfThePagesStay(t *testing.T) {
	files, _ := filepath.Glob("../../docs/*.md")
	guides, _ := filepath.Glob("../../docs/guides/*.md")
	n := 0
	for _, file := range append(append(files, guides...), "../../README.md") {
		raw, _ := os.ReadFile(file)
		for _, m := range regexp.MustCompile(`\b([a-z]+)/([a-z][\w.-]+)`).FindAllStringSubmatch(string(raw), -1) {
			for _, model := range catalog.Lookup(m[1], m[2]) {
				if n++; model.Deprecated != "" {
					t.Errorf("%s: the vendor ends %s: %s", file, m[0], model.Deprecated)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d models", n)
	}
}

// The commands within the text of the pages exist, with their flags.
func TestCommandsInTextExist(t *testing.T) {
	files, _ := filepath.Glob("../../docs/*.md")
	guides, _ := filepath.Glob("../../docs/guides/*.md")
	w, n := &world{T: t, home: t.TempDir()}, 0
	for _, file := range append(append(files, guides...), "../../README.md") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`weir ([a-z][^`]*)`").FindAllStringSubmatch(string(raw), -1) {
			n++
			args := strings.Fields(strings.ReplaceAll(m[1], "'", ""))
			at := slices.IndexFunc(args, func(word string) bool { return strings.HasPrefix(word, "-") })
			if at < 0 {
				at = len(args)
			}
			if _, _, failed := w.runIn(w.env(), "", slices.Insert(args, at, "--help")...); strings.Contains(failed, "unknown") {
				t.Errorf("%s: weir %s: %s", file, m[1], failed)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d commands", n)
	}
}

func (p page) run(t *testing.T, name, text string, blocks [][]string) {
	others := httptest.NewServer(http.HandlerFunc(internet))
	t.Cleanup(others.Close)
	w := newWorld(t, everywhere(others.URL))
	repo, _ := filepath.Abs("../..")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(w.home, "bin")
	os.Mkdir(bin, 0o700)
	for name, script := range programs {
		os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)
	}
	os.Symlink(filepath.Join(bin, "build.sh"), filepath.Join(w.home, "build.sh"))
	added := w.ok("keys", "add", "reader", "--json")
	key := regexp.MustCompile(`sk-[^"]+`).FindString(added)
	keyID := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(added)[1]
	manage := strings.TrimSpace(w.ok("keys", "add", "manager", "--scopes", "manage"))
	id := regexp.MustCompile(`"machineId":"([^"]+)"`).FindStringSubmatch(w.ok("machines", "--json"))[1]
	w.ok("accounts", "add", "openai", "--name", "reader", "--api-key", "env:API_KEY")
	pairs := append([]string{"https://weir.example.com", w.url, "http://127.0.0.1:8787", w.url, "http://127.0.0.1:11434", w.upstream.URL,
		"ADDRESS/", others.URL + "/", "sk-…", key, "/MACHINE/", "/" + id + "/", "YOUR OPENAI KEY", "sk-openai"}, p.values...)
	for i := 0; i < len(p.values); i += 2 {
		if !strings.Contains(text, p.values[i]) {
			t.Errorf("the page has no %q", p.values[i])
		}
	}
	values, known := strings.NewReplacer(pairs...), strings.NewReplacer("{id}", id, "{key}", key, "{release}", others.URL)
	os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte(litellmFile), 0o600)
	os.WriteFile(filepath.Join(w.home, "channels"), []byte(oneAPIRows), 0o600)
	os.WriteFile(filepath.Join(w.home, "config.json"), []byte(portkeyFile), 0o600)
	if _, file, ok := strings.Cut(text, "```yaml\n"); ok {
		file, _, _ = strings.Cut(file, "```")
		os.WriteFile(filepath.Join(w.home, "first.yaml"), []byte(values.Replace(file)), 0o600)
	}
	script := p.before + "\n"
	for i, b := range blocks {
		commands := known.Replace(values.Replace(b[2]))
		if b[1] == "powershell" { // it is not on Linux: that its script is there is what can be said
			commands = "curl -fsS " + regexp.MustCompile(`'http[^']*\.ps1'`).FindString(commands) + "\n"
		}
		for part, commands := range p.then {
			if strings.Contains(b[2], part) {
				script += commands + "\n"
			}
		}
		script += "echo '## block " + strconv.Itoa(i+1) + "'\n" + commands
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = w.home
	cmd.Env = append(w.process().Env, asProgram+"=1", "PATH="+bin+":"+os.Getenv("PATH"), "EXE="+exe, "CURL="+curl, "REPO="+repo, "TOKEN="+token,
		"ADMIN_TOKEN="+token, "MANAGE_KEY="+manage, "WEIR_API_KEY="+key, "MACHINE_ID="+id, "KEY_ID="+keyID, "OPENAI_API_KEY=sk-test", "READER_APIKEY=sk-upstream-0123456789",
		"CLIENT_SECRET=secret", "PASSPHRASE=correct horse battery staple")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// everywhere is a transport that has one server in place of all others.
type everywhere string

func (e everywhere) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(string(e))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Host, r.URL.Scheme, r.URL.Host = r.URL.Host, to.Scheme, to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// internet is what the commands reach: providers, an issuer, Slack, a bucket, a collector and a release.
func internet(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/.well-known/openid-configuration":
		issuer := "https://" + r.Host
		io.WriteString(w, `{"issuer":"`+issuer+`","authorization_endpoint":"`+issuer+`/authorize","token_endpoint":"`+issuer+`/token","jwks_uri":"`+issuer+`/keys"}`)
	case r.URL.Path == "/keys":
		io.WriteString(w, `{"keys":[]}`)
	case r.Method == "PUT", strings.HasPrefix(r.URL.Path, "/otlp/"): // of a bucket, of a collector
	case strings.HasPrefix(r.URL.Path, "/services/"):
		io.WriteString(w, "ok")
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`)
	case r.URL.Path == "/install.sh":
		io.WriteString(w, "signer='ssh-ed25519 AAAA'   # key\n")
	case r.URL.Path == "/SHA256SUMS":
		io.WriteString(w, "0 weir.tar.gz\n")
	default:
		upstream(w, r)
	}
}
