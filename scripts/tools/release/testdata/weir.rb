# Made by the release.
class Weir < Formula
  desc "AI gateway: one address and one key for model providers"
  homepage "https://git.example/owner/weir"
  version "1.2.0"
  license "MIT"

  on_macos do
    on_arm do
      url "https://git.example/owner/weir/releases/download/v1.2.0/weir-v1.2.0-darwin-arm64.tar.gz"
      sha256 "…"
    end

    on_intel do
      url "https://git.example/owner/weir/releases/download/v1.2.0/weir-v1.2.0-darwin-amd64.tar.gz"
      sha256 "…"
    end
  end

  on_linux do
    on_arm do
      url "https://git.example/owner/weir/releases/download/v1.2.0/weir-v1.2.0-linux-arm64.tar.gz"
      sha256 "…"
    end

    on_intel do
      url "https://git.example/owner/weir/releases/download/v1.2.0/weir-v1.2.0-linux-amd64.tar.gz"
      sha256 "…"
    end
  end

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
