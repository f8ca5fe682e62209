#!/usr/bin/env bash
# Copies what was built into the folders that a package has below its prefix: the program, manual pages, completions,
# documentation and the example units. Builds nothing, and needs no tools beyond bash and coreutils.
#
#     ./scripts/stage.sh PREFIX BINARY DOCS
#
# DOCS is a folder with what ./scripts/make_docs.sh wrote, and THIRD-PARTY.txt of make_notices.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ $# = 3 ] || die "give the prefix, the program and the folder of manual pages and completions"
prefix=$1 binary=$2 docs=$3
umask 022

# put MODE FILE PATH: copies a file to a path below the prefix.
put() { install -D -m "$1" "$2" "$prefix/$3"; }

put 755 "$binary" bin/volfs
for page in "$docs"/man/*.[1-8]; do
    put 644 "$page" "share/man/man${page##*.}/$(basename "$page")"
done
put 644 "$docs/completions/volfs.bash" share/bash-completion/completions/volfs
put 644 "$docs/completions/_volfs" share/zsh/site-functions/_volfs
put 644 "$docs/completions/volfs.fish" share/fish/vendor_completions.d/volfs.fish
put 644 "$docs/THIRD-PARTY.txt" share/doc/volfs/THIRD-PARTY.txt
for text in README.md CHANGELOG.md LICENSE; do
    put 644 "$repo/$text" "share/doc/volfs/$text"
done
while read -r file; do
    put 644 "$repo/docs/$file" "share/doc/volfs/docs/$file"
done <<<"$(cd "$repo/docs" && find . -type f -printf '%P\n')"
