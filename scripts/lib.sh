# Shared by the scripts of this folder: finds the packages they need and installs missing ones. Source it, do not run
# it.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "$(basename "$0"): $*"; exit 1; }

# Prints the heading of the next step.
step() { printf '\n== %s\n\n' "$*"; }

# Prints a command line as a user would type it, then runs it.
show() {
    printf '$ %s\n' "$1"
    eval "$1"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

apt_is_fresh=no

# Succeeds if Debian has a package; the first call updates the package lists.
apt_offers() {
    command -v apt-get >/dev/null || return 1
    if [ $apt_is_fresh = no ]; then
        as_root apt-get update -q >/dev/null || return 1
        apt_is_fresh=yes
    fi
    [[ $(apt-cache policy "$1") == *'Candidate: '[!\(]* ]]
}

# Installs Debian packages; fails if that is not possible, or if others had to be removed for them.
apt_install() {
    apt_offers "$1" || return 1
    say "installing: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-remove --no-install-recommends "$@" 2>&1 >/dev/null \
        | { grep -v '^debconf: delaying package configuration' || true; } >&2
}

# Prints the libclang libraries of this machine in the order in which bindgen prefers them: the highest version first.
# The C++ library libclang-cpp has a similar name and is another library.
libclang_candidates() {
    local folders folder file name
    if [ -d "${LIBCLANG_PATH:-}" ]; then
        folders=("$LIBCLANG_PATH")
    elif [ -n "${LIBCLANG_PATH:-}" ]; then
        say "$LIBCLANG_PATH"
        return
    else
        IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
        folders+=(/usr/local/llvm*/lib* /usr/local/lib*/*/* /usr/local/lib*/* /usr/local/lib* /usr/lib*/*/* /usr/lib*/* /usr/lib*)
    fi
    for folder in "${folders[@]}"; do
        for file in "$folder"/libclang.so "$folder"/libclang-*.so "$folder"/libclang.so.* "$folder"/libclang-*.so.*; do
            name=${file##*/}
            if [ -e "$file" ] && [[ $name != *-cpp.* ]]; then
                printf '%s\t%s\n' "$(sed -E 's/^libclang(-|\.so\.?)//; s/\.so.*//' <<<"$name")" "$file"
            fi
        done
    done | sort -s -r -V -t $'\t' -k 1,1 | cut -f 2
}

# Writes a program that succeeds if the libclang of its first argument reads the C file of the second without a
# complaint, as bindgen will make it do.
write_libclang_probe() {
    cat <<'PROBE'
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>

typedef void *create_index(int, int);
typedef void *parse_file(void *, const char *, const char *const *, int, void *, unsigned, unsigned);
typedef unsigned count_diagnostics(void *);

int main(int count, char **arguments) {
    void *clang = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!clang) return 1;
    create_index *create = (create_index *)dlsym(clang, "clang_createIndex");
    parse_file *parse = (parse_file *)dlsym(clang, "clang_parseTranslationUnit");
    count_diagnostics *diagnostics = (count_diagnostics *)dlsym(clang, "clang_getNumDiagnostics");
    if (!create || !parse || !diagnostics) return 1;
    void *unit = parse(create(0, 0), arguments[2], NULL, 0, NULL, 0, 0);
    return !unit || diagnostics(unit) > 0;
}
PROBE
}

# Succeeds if bindgen will find a libclang that works. Which files a machine has does not tell: a library may lack the
# headers of its version, or be a link that leads nowhere. So each library reads a C file here. Where bindgen would
# choose one that does not work, LIBCLANG_PATH names one that does. Needs a C compiler.
has_libclang() {
    local probe candidate first=yes found=no
    probe=$(mktemp -d "${TMPDIR:-/tmp}/volfs-libclang.XXXXXX") || return 1
    write_libclang_probe >"$probe/probe.c"
    if cc -o "$probe/probe" "$probe/probe.c" -ldl 2>/dev/null; then
        while [ $found = no ] && read -r candidate; do
            if "$probe/probe" "$candidate" "$probe/probe.c" 2>/dev/null; then
                found=yes
                [ $first = yes ] || export LIBCLANG_PATH=$candidate
            fi
            first=no
        done <<<"$(libclang_candidates)"
    fi
    rm -rf "$probe"
    [ $found = yes ]
}

# Installs Debian packages that the build cannot do without.
need_installed() {
    [ $# -gt 0 ] || return 0
    apt_install "$@" || die "cannot install $*; install them as root and start again:
    apt-get update && apt-get install $*"
}

# Installs the C compiler and fusermount3, if missing.
need_packages() {
    local missing=()
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    command -v fusermount3 >/dev/null || missing+=(fuse3)
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
    need_installed "${missing[@]}"
}

# Installs what a build with the feature libzfp needs besides, if missing.
need_libzfp_packages() {
    local missing=()
    command -v c++ >/dev/null && command -v make >/dev/null || missing+=(build-essential)
    command -v cmake >/dev/null || missing+=(cmake)
    need_installed "${missing[@]}"
    # with the compiler in place, since it is needed to find out
    if ! has_libclang; then
        need_installed libclang-dev
        has_libclang || die "libclang is installed, and does not work; look at what \`ldd /usr/lib/llvm-*/lib/libclang*.so*\` misses,
or set LIBCLANG_PATH to one that does"
    fi
}

# at_least WANTED VERSION: succeeds if VERSION is not older than WANTED.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

rust_is_new_enough() {
    local have
    have=$(cd "$repo" && cargo --version 2>/dev/null | sed 's/^cargo \([0-9.]*\).*/\1/') || return 1
    [ -n "$have" ] && at_least "$rust_wanted" "$have"
}

# Installs Debian's packages of Rust, the ones that it keeps up to date for its browsers; fails if they are too old.
install_debian_rust() {
    apt_offers cargo-web || return 1
    at_least "$rust_wanted" "$(apt-cache policy cargo-web | sed -n 's/^ *Candidate: //p')" || return 1
    apt_install cargo-web rustc-web
}

# Runs rustup's own installer, which installs into the home folder.
install_rustup() {
    command -v curl >/dev/null || apt_install curl || return 1
    say "installing: rustup, with the installer of https://rustup.rs"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs \
        | sh -s -- -y -q --no-modify-path --profile minimal >/dev/null || return 1
    PATH=$HOME/.cargo/bin:$PATH
}

# Installs Rust if it is missing or older than Cargo.toml requires.
need_rust() {
    rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$repo/Cargo.toml")
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    rust_is_new_enough && return
    if ! command -v rustup >/dev/null; then
        install_debian_rust && rust_is_new_enough && return
        apt_install rustup || install_rustup || die "Rust $rust_wanted or newer is needed.
Get it from https://rustup.rs (one command, no root needed), then start again."
    fi
    say "installing: the Rust toolchain"
    rustup -q toolchain install stable --profile minimal >/dev/null || die "rustup cannot install the stable toolchain"
    export RUSTUP_TOOLCHAIN=stable
    rust_is_new_enough || die "Rust $rust_wanted or newer is needed; cargo says: $(cargo --version 2>&1 | head -n 1)"
}

# want_cargo_tool fmt|clippy: succeeds if cargo has the command; rustup adds it. Debian's newer Rust has neither.
want_cargo_tool() {
    (cd "$repo" && cargo "$1" --version) >/dev/null 2>&1 && return
    command -v rustup >/dev/null || return 1
    say "installing: cargo $1"
    (cd "$repo" && rustup -q component add "${1/#fmt/rustfmt}") >/dev/null
}

# The version of cargo-deny that is installed where there is none. Building it takes two and a half minutes on two cores;
# cargo keeps it in its home folder.
cargo_deny_version=0.20.2

# Installs cargo-deny if it is missing; fails if it cannot be had.
want_cargo_deny() {
    if ! (cd "$repo" && cargo deny --version) >/dev/null 2>&1; then
        say "installing: cargo-deny $cargo_deny_version (some minutes)"
        (cd "$repo" && cargo install --quiet --locked "cargo-deny@$cargo_deny_version") || return 1
    fi
}

# take_crates_from FOLDER: sets from_crates to the options with which cargo takes crates from a folder and not from the
# network; to none if there is no such folder.
take_crates_from() {
    from_crates=()
    [ -d "$1" ] || return 0
    from_crates=(--config net.offline=true --config 'source.crates-io.replace-with="folder"' --config "source.folder.directory=\"$1\"")
}

# cargo_field KEY: prints a text of the table [package] of Cargo.toml, or the first one of a list of texts.
cargo_field() {
    sed -n "/^\[package\]/,/^\[lib\]/s/^$1 = \[\?\"\([^\"]*\)\".*/\1/p" "$repo/Cargo.toml"
}

# Prints the time of the last commit in seconds: what packages are dated with, so that they can be made again. In an
# unpacked archive it is that of the files.
commit_time() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        say "$SOURCE_DATE_EPOCH"
    elif [ -e "$repo/.git" ]; then
        git -C "$repo" log -1 --format=%ct
    else
        stat -c %Y "$repo/Cargo.toml"
    fi
}

# Prints the target folder of cargo.
target_dir() {
    (cd "$repo" && cargo metadata --no-deps --format-version 1) | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
}

# Lets cargo build what does not tell where it was built: the folders of the sources, of the crates and of what is built
# have the same names everywhere. So the same tools make the same program in any folder (scripts/check_reproducible.sh).
neutral_paths() {
    local from to flags=()
    while IFS=$'\t' read -r from to; do
        flags+=("--remap-path-prefix=$from=$to")
        # crates in C name their files in assertions
        [[ $from = *' '* ]] || export CFLAGS="${CFLAGS:-} -ffile-prefix-map=$from=$to"
    done < <(printf '%s\t%s\n' "${CARGO_HOME:-$HOME/.cargo}" /cargo "$repo" /volfs "$(target_dir)" /volfs/target)
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; printf %s "${CARGO_ENCODED_RUSTFLAGS:+$CARGO_ENCODED_RUSTFLAGS$IFS}${flags[*]}")
    export CARGO_ENCODED_RUSTFLAGS
}

# Prints the reason why this machine cannot mount, or nothing if it can.
why_no_fuse() {
    if [ ! -e /dev/fuse ]; then
        say "/dev/fuse does not exist (load the module: modprobe fuse; in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
    elif ! { true <>/dev/fuse; } 2>/dev/null; then
        say "/dev/fuse cannot be opened by this user (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
    elif [ "$(id -u)" = 0 ]; then
        local capabilities
        capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
        (( 16#$capabilities >> 21 & 1 )) || say "root lacks the right to mount here (in a container: --cap-add SYS_ADMIN)"
    elif ! command -v fusermount3 >/dev/null; then
        say "fusermount3 is missing (package fuse3)"
    fi
}

# Prints the name of a Python that has NumPy, or nothing if there is none.
numpy_python() {
    local python
    for python in python3 /usr/bin/python3; do
        if command -v "$python" >/dev/null && "$python" -c 'import numpy' 2>/dev/null; then
            say "$python"
            return
        fi
    done
}

# json_value FILE KEY: prints a value from a JSON file of the mount: a number, a text, or the items of a list of
# numbers.
json_value() {
    if command -v python3 >/dev/null; then
        python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))[sys.argv[2]]
print(*(v if isinstance(v, list) else [v]))' "$1" "$2"
    else
        tr -d ' \n' <"$1" | sed -n "s/.*\"$2\":\(\[[^]]*\]\|\"[^\"]*\"\|[^,}]*\).*/\1/p" | tr -d '[]"' | tr ',' ' '
        echo
    fi
}
