#!/usr/bin/env bash
# Writes the licences of everything that is linked into volfs, which have to go with every binary.
#
#     ./scripts/make_notices.sh FILE [CRATES]
#
# The texts come from the sources that cargo has unpacked, so build first; or from the folder CRATES, which has them by
# name and version. With WITH_PYTHON=1 also of what is linked into the extension of the Python module.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ $# = 1 ] || [ $# = 2 ] || die "give the file to write to"
need_rust
sources=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/)
if [ -d "${2:-}" ]; then sources=("$2/"); fi
take_crates_from "${2:-}"
declare -A shown=()
{
    say "volfs is linked with the packages below. Their licences:"
    # those whose code is in the program: not what only builds or tests it
    (cd "$repo" && cargo tree --package volfs ${WITH_PYTHON:+--package volfs-python} --locked --offline "${from_crates[@]}" --edges normal --no-dedupe --prefix none --format '{p}|{l}|{r}') \
        | sed '/^volfs v/d; /^volfs-python v/d; /(proc-macro)/d; s/ v/|/' | LC_ALL=C sort -u | while IFS='|' read -r name version licence address; do
        printf '\n%s\n%s %s, %s, %s\n' "$(printf '=%.0s' {1..80})" "$name" "$version" "$licence" "$address"
        found=no
        for source in "${sources[@]}"; do
            for folder in "$source$name-$version" "$source$name-$version"/*/; do
                for text in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/COPYRIGHT* "$folder"/NOTICE* "$folder"/license*; do
                    [ -f "$text" ] || continue
                    found=yes
                    sum=$(sha256sum <"$text")
                    if [ -n "${shown[$sum]:-}" ]; then
                        printf '\n(%s: the same as of %s)\n' "$(basename "$text")" "${shown[$sum]}"
                    else
                        shown[$sum]="$name $version"
                        printf '\n'
                        cat "$text"
                    fi
                done
            done
        done
        [ $found = yes ] || printf '\n(The package has no text of its own; see the name of its licence above.)\n'
    done
} >"$1"
