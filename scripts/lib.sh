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

# Installs Debian packages; fails if that is not possible.
apt_install() {
    apt_offers "$1" || return 1
    say "installing: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null
}

# Succeeds if libclang is where bindgen looks for it, with clang's own headers. The C++ library libclang-cpp does not
# count: a machine may have it without libclang.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return
    local library headers
    library=$(compgen -G '/usr/lib/llvm-*/lib/libclang.so*' || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' \
        || compgen -G '/usr/lib/*/libclang.so*' || compgen -G '/usr/lib/*/libclang-[0-9]*.so*') || return 1
    headers=$(compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' || compgen -G '/usr/lib/clang/*/include/stddef.h') || return 1
    [ -n "$library" ] && [ -n "$headers" ]
}

# Installs the compiler, the other build dependencies and fusermount3, if missing.
need_packages() {
    local missing=()
    command -v cc >/dev/null && command -v c++ >/dev/null && command -v make >/dev/null || missing+=(build-essential)
    command -v cmake >/dev/null || missing+=(cmake)
    has_libclang || missing+=(libclang-dev)
    command -v fusermount3 >/dev/null || missing+=(fuse3)
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
    if [ ${#missing[@]} -gt 0 ]; then
        apt_install "${missing[@]}" || die "cannot install ${missing[*]}; install them as root and start again:
    apt-get update && apt-get install ${missing[*]}"
    fi
}

# at_least WANTED VERSION: succeeds if VERSION is not older than WANTED.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

rust_is_new_enough() {
    local have
    have=$(cd "$repo" && cargo --version 2>/dev/null | sed 's/^cargo \([0-9.]*\).*/\1/') || return 1
    [ -n "$have" ] && at_least "$rust_wanted" "$have"
}

# For Debian before 13, which has no rustup package: runs rustup's own installer, which installs into the home folder.
install_rustup() {
    command -v curl >/dev/null || apt_install curl || return 1
    say "installing: rustup, with the installer of https://rustup.rs"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs \
        | sh -s -- -y -q --no-modify-path --profile minimal >/dev/null || return 1
    PATH=$HOME/.cargo/bin:$PATH
}

# Installs Rust if it is missing or older than Cargo.toml requires; with the arguments "clippy" and "rustfmt" also
# those.
need_rust() {
    local tool
    rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$repo/Cargo.toml")
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    if ! rust_is_new_enough; then
        command -v rustup >/dev/null || apt_install rustup || install_rustup || die "Rust $rust_wanted or newer is needed.
Get it from https://rustup.rs (one command, no root needed), then start again."
        say "installing: the Rust toolchain"
        rustup -q toolchain install stable --profile minimal >/dev/null || die "rustup cannot install the stable toolchain"
        export RUSTUP_TOOLCHAIN=stable
        rust_is_new_enough || die "Rust $rust_wanted or newer is needed; cargo says: $(cargo --version 2>&1 | head -n 1)"
    fi
    for tool in "$@"; do
        if ! (cd "$repo" && cargo "${tool/rustfmt/fmt}" --version) >/dev/null 2>&1; then
            command -v rustup >/dev/null || die "cargo ${tool/rustfmt/fmt} is missing; install $tool for your Rust"
            say "installing: $tool"
            (cd "$repo" && rustup -q component add "$tool") >/dev/null || die "rustup cannot install $tool"
        fi
    done
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

# Prints the target folder of cargo.
target_dir() {
    (cd "$repo" && cargo metadata --no-deps --format-version 1) | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
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
