#!/usr/bin/env bash
# Builds a Debian package of volfs for this machine's architecture: the program, manual pages, completions,
# documentation and the example units. It only needs dpkg-deb, which every Debian has. The crates come from ./vendor if
# it is there, as in scripts/install.sh; all of it works in an unpacked archive of the sources, too.
#
#     ./scripts/make_deb.sh [FOLDER]      FOLDER/volfs_VERSION-REVISION_ARCHITECTURE.deb; default FOLDER: target/debian
#
# The environment can set MAINTAINER="Name <address>" and REVISION (default 1).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_packages
need_rust
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || die "dpkg-deb and dpkg-shlibdeps are needed (packages dpkg and dpkg-dev)"
target=$(target_dir)
folder=${1:-$target/debian}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$repo"

step "Building"
neutral_paths
# One build for both: the generator of the manual pages shares everything with the program.
take_crates_from "$repo/vendor"
cargo build --release --locked "${from_crates[@]}" --bin volfs --example generate
./scripts/make_docs.sh --with "$target/release/examples/generate" "$target/docs"
./scripts/make_notices.sh "$target/docs/THIRD-PARTY.txt" "$repo/vendor"

step "Packing"
version=$(cargo_field version)-${REVISION:-1}
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=$(commit_time)
export SOURCE_DATE_EPOCH
maintainer=${MAINTAINER:-$(cargo_field authors)}
work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/root

# compressed FILE PATH: copies a file into the package with gzip
compressed() {
    mkdir -p "$root/$(dirname "$2")"
    gzip -9n <"$1" >"$root/$2"
}

./scripts/stage.sh "$root/usr" "$target/release/volfs" "$target/docs"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/volfs"
gzip -9n "$root"/usr/share/man/man*/*
# where Debian has these files
rm "$root/usr/share/doc/volfs/LICENSE" "$root/usr/share/doc/volfs/CHANGELOG.md"
compressed CHANGELOG.md usr/share/doc/volfs/changelog.gz
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
for unit in volfs@.service volfs-store@.service; do
    install -D -m 644 "docs/systemd/$unit" "$root/usr/lib/systemd/system/$unit"
done

cat >"$work/changelog" <<END
volfs ($version) unstable; urgency=medium

  * See changelog.gz.

 -- $maintainer  $(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %T +0000')
END
compressed "$work/changelog" usr/share/doc/volfs/changelog.Debian.gz

cat >"$root/usr/share/doc/volfs/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: volfs
Source: $(cargo_field repository)

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) The authors of volfs
License: Apache-2.0
Comment: The licences of the packages that are linked in are in THIRD-PARTY.txt beside this file.

License: Apache-2.0
 On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0.
END

mkdir -p "$work/debian"
printf 'Source: volfs\n\nPackage: volfs\nArchitecture: any\nDepends: ${shlibs:Depends}\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "$root/usr/bin/volfs" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || die "dpkg-shlibdeps finds no libraries that the program needs"

synopsis=$(cargo_field description)
mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: volfs
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s --apparent-size --exclude=DEBIAN "$root" | cut -f 1)
Depends: fuse3, $libraries
Suggests: python3-numpy
Section: science
Priority: optional
Homepage: $(cargo_field repository)
Description: ${synopsis,}
$(sed -n '/^about = """$/,/"""$/{/^about/d; s/"""$//; s/^/ /p}' Cargo.toml)
END
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch --no-dereference --date="@$SOURCE_DATE_EPOCH"

package=$folder/volfs_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
say "$package"
