class Volfs < Formula
  desc "Mounts seismic and microscopy volumes as plain array files"
  homepage "https://example.org/volfs"
  url "https://example.org/volfs/releases/download/v0.1.0/volfs-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "rust" => :build
  depends_on :linux

  # the crates, so that a build needs no network
  resource "vendor" do
    url "https://example.org/volfs/releases/download/v0.1.0/volfs-0.1.0-vendor.tar.gz"
    sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  end

  def install
    resource("vendor").stage buildpath/"vendor"
    ENV["CARGO_PROFILE_RELEASE_STRIP"] = "true"
    system "./scripts/install.sh", prefix
  end

  def caveats
    <<~TEXT
      Mounting needs /dev/fuse, and for ordinary users fusermount3 of the system
      (package fuse3), which is set-user-ID.
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/volfs --version")
    (testpath/"a.zgy").write "not a survey"
    assert_match "a.zgy", shell_output("#{bin}/volfs verify #{testpath} 2>&1", 1)
  end
end
