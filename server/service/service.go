// Package service has the server started by the system: by systemd, launchd or the services of
// Windows. It says what to write and what to run; the program does it.
package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"weir/deploy"
)

// Request is a service that is wanted.
type Request struct {
	System  string   // as runtime.GOOS
	Program string   // path of the program
	Args    []string // of weir serve
	Home    string   // of the user
	Config  string   // folder of the user's configuration; systemd only
	UID     int      // 0 is the service of the whole computer, on Linux
	Package bool     // a package has installed the units; Linux, UID 0
}

// File is a file that the system reads.
type File struct{ Path, Content string }

// Plan is how a service is installed, removed and examined, by commands in their order.
type Plan struct {
	Files                      []File
	Install, Uninstall, Status [][]string
	Links                      []string // that the system makes to the files, and removes unless that fails
	Folders                    []string // that are removed with the last file in them, in this order
	Next                       string   // what else to do or to know
	Stays                      string   // what is left when the service is removed
}

// label names the agent of launchd.
const label = "weir"

// Plan returns how the service is installed. The error says why it cannot be.
func (r Request) Plan() (*Plan, error) {
	switch r.System {
	case "linux":
		if r.UID == 0 {
			return r.systemUnit()
		}
		return r.userUnit(), nil
	case "darwin":
		if r.UID == 0 {
			return nil, fmt.Errorf("the agent of launchd is that of a user; run the command without sudo")
		}
		return r.agent(), nil
	case "windows":
		return r.windows(), nil
	}
	return nil, fmt.Errorf("there are no services for %s here; have the system start %s serve", r.System, r.Program)
}

// systemUnit is the service of a computer, of deploy/weir.service.
func (r Request) systemUnit() (*Plan, error) {
	if len(r.Args) > 0 {
		return nil, fmt.Errorf("the service of the computer has its settings in /etc/weir/weir.env, one NAME=value a line; leave out %s", r.Args[0])
	}
	for _, private := range []string{"/home/", "/root/"} {
		if strings.HasPrefix(r.Program, private) {
			return nil, fmt.Errorf("the service may not read %s; copy the program to /usr/local/bin first", r.Program)
		}
	}
	units := []string{"weir.socket", "weir.service"}
	p := &Plan{
		Install: [][]string{{"systemctl", "daemon-reload"}, append([]string{"systemctl", "enable", "--now"}, units...),
			{"systemctl", "restart", "weir.service"}}, // one that runs has the settings before
		Uninstall: [][]string{append([]string{"systemctl", "disable", "--now"}, units...)},
		Status:    [][]string{{"systemctl", "--no-pager", "status", "weir.service"}},
		Stays:     "Its data stays, in /var/lib/weir, and its settings, in /etc/weir.",
		Next:      "Settings: /etc/weir/weir.env. The log has a link to sign in: journalctl -u weir. Another one: DATA_DIR=/var/lib/weir weir init",
	}
	if r.Package {
		return p, nil
	}
	p.Files = []File{
		{"/etc/systemd/system/weir.service", strings.Replace(afterComment(deploy.Unit), "/usr/local/bin/weir serve", unitWords(r.Program, "serve"), 1)},
		{"/etc/systemd/system/weir.socket", afterComment(deploy.Socket)},
	}
	p.Links = []string{"/etc/systemd/system/multi-user.target.wants/weir.service", "/etc/systemd/system/sockets.target.wants/weir.socket"}
	p.Uninstall = append(p.Uninstall, []string{"systemctl", "daemon-reload"})
	return p, nil
}

// afterComment returns a unit without the comment before it, which says how to install it.
func afterComment(unit string) string { return unit[strings.Index(unit, "[Unit]"):] }

// userUnit is the service of a user.
func (r Request) userUnit() *Plan {
	unit := `[Unit]
Description=weir, an AI gateway

[Service]
Type=notify
ExecStart=` + unitWords(append([]string{r.Program, "serve"}, r.Args...)...) + `
EnvironmentFile=-%E/weir/weir.env
Restart=on-failure
RestartSec=1
# DRAIN, 30 s, and 25 s. With another value of DRAIN weir itself asks systemd for that time.
TimeoutStopSec=55
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`
	folder := filepath.Join(r.Config, "systemd/user")
	wants := filepath.Join(folder, "default.target.wants")
	settings := filepath.Join(r.Config, "weir/weir.env")
	return &Plan{
		Files:   []File{{filepath.Join(folder, "weir.service"), unit}},
		Links:   []string{filepath.Join(wants, "weir.service")},
		Folders: []string{wants, folder, filepath.Dir(folder)},
		Stays:   "Its data stays, and " + settings + " if you have made it.",
		Install: [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "weir.service"},
			{"systemctl", "--user", "restart", "weir.service"}},
		Uninstall: [][]string{{"systemctl", "--user", "disable", "--now", "weir.service"}, {"systemctl", "--user", "daemon-reload"}},
		Status:    [][]string{{"systemctl", "--user", "--no-pager", "status", "weir.service"}},
		Next: "Settings: " + settings + ", one NAME=value a line. A link to sign in: weir init\n" +
			"It stops when you sign out, unless you run: loginctl enable-linger",
	}
}

// unitWords returns words as a command line of a unit, see systemd.service(5).
func unitWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		w = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(w)
		if strings.ContainsAny(w, " \t'\"\\;") {
			w = `"` + w + `"`
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// agent is the agent of a user of macOS.
func (r Request) agent() *Plan {
	var b strings.Builder
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, word := range append([]string{r.Program, "serve"}, r.Args...) {
		b.WriteString("\t\t" + element(word) + "\n")
	}
	log := filepath.Join(r.Home, "Library/Logs/weir.log")
	b.WriteString(`	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ExitTimeOut</key>
	<integer>55</integer>
	<key>Umask</key>
	<integer>63</integer>
	<key>SoftResourceLimits</key>
	<dict>
		<key>NumberOfFiles</key>
		<integer>65536</integer>
	</dict>
	<key>StandardOutPath</key>
	` + element(log) + `
	<key>StandardErrorPath</key>
	` + element(log) + `
</dict>
</plist>
`)
	domain := "gui/" + strconv.Itoa(r.UID)
	file := filepath.Join(r.Home, "Library/LaunchAgents", label+".plist")
	return &Plan{
		Files:     []File{{file, b.String()}},
		Install:   [][]string{{"launchctl", "bootstrap", domain, file}},
		Uninstall: [][]string{{"launchctl", "bootout", domain + "/" + label}},
		Status:    [][]string{{"launchctl", "print", domain + "/" + label}},
		Stays:     "Its data stays, and its log, " + log + ".",
		Next:      "Log: " + log + ". A link to sign in: weir init",
	}
}

// element returns a text as an element of a property list.
func element(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return "<string>" + b.String() + "</string>"
}

// WindowsData is the data directory of the service of Windows: that of the account that it runs
// as, which other users cannot read.
const WindowsData = `C:\Windows\ServiceProfiles\LocalService\AppData\Local\weir`

// windows is a service of Windows, which runs as an account without rights of its own.
func (r Request) windows() *Plan {
	line := `"` + r.Program + `" serve`
	for _, arg := range r.Args {
		line += ` "` + arg + `"`
	}
	return &Plan{
		Install: [][]string{
			{"sc.exe", "create", label, "binPath=", line, "start=", "delayed-auto", "obj=", `NT AUTHORITY\LocalService`},
			{"sc.exe", "description", label, "weir, an AI gateway"},
			{"sc.exe", "failure", label, "reset=", "60", "actions=", "restart/1000/restart/1000/restart/10000"},
			{"sc.exe", "start", label},
		},
		Uninstall: [][]string{{"sc.exe", "stop", label}, {"sc.exe", "delete", label}},
		Status:    [][]string{{"sc.exe", "query", label}},
		Stays:     "Its data stays, in " + WindowsData + ".",
		Next:      "A link to sign in, as an administrator: weir init --data " + WindowsData,
	}
}
