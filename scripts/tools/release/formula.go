package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeFormula writes weir.rb, the formula of Homebrew, of the archives for macOS and Linux. A
// release that does not know its address has none.
func (r *release) writeFormula() error {
	releases, _, err := r.settings()
	if err != nil || releases == "" {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by the release.\nclass Weir < Formula\n  desc %q\n  homepage %q\n  version %q\n  license \"MIT\"\n",
		summary, r.repository, strings.TrimPrefix(r.version, "v"))
	for _, system := range []struct{ os, name string }{{"darwin", "macos"}, {"linux", "linux"}} {
		var lines []string
		for _, arch := range []struct{ arch, name string }{{"arm64", "arm"}, {"amd64", "intel"}} {
			t := target{system.os, arch.arch}
			if !slices.Contains(r.targets, t) {
				continue
			}
			file := "weir-" + r.version + "-" + t.os + "-" + t.arch + ".tar.gz"
			content, err := os.ReadFile(filepath.Join(r.out, file))
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("    on_%s do\n      url \"%s/download/%s/%s\"\n      sha256 \"%x\"\n    end\n",
				arch.name, releases, r.version, file, sha256.Sum256(content)))
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n  on_%s do\n%s  end\n", system.name, strings.Join(lines, "\n"))
		}
	}
	b.WriteString(`
  def install
    bin.install "weir"
    generate_completions_from_executable(bin/"weir", "completion")
  end

  service do
    run [opt_bin/"weir", "serve"]
    keep_alive crashed: true
    log_path var/"log/weir.log"
    error_log_path var/"log/weir.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/weir version")
  end
end
`)
	return r.write("weir.rb", b.Bytes())
}
