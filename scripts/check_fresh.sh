#!/usr/bin/env bash
# Runs the commands of the README on machines that have nothing: makes roots of Debian 12 and 13 with the packages that
# every Debian has and no others, puts a clean checkout of the last commit into each, and runs ./scripts/demo.sh and
# ./scripts/test.sh there. Takes about a quarter of an hour for each release on two cores. Needs root and the packages
# mmdebstrap and git, which it does not install by itself.
#
#     ./scripts/check_fresh.sh [OPTIONS]
#         --release 12|13      only this release
#         --demo               only ./scripts/demo.sh
#         --wheel FILE         only ./scripts/demo.sh --wheel FILE
#         --host-rust          binds the Rust of this machine into the roots, read-only, so that they do not get their own:
#                              for lints, which Debian's newer Rust does not have, and where it cannot be downloaded
#         --keep               leaves the roots where they are
#
# Each root has mounts and processes of its own (namespaces), which end with it. What it shares with this machine: the
# kernel, the network with its proxies and certificates, and /dev/fuse if there is one.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

releases=(12 13) commands=(./scripts/demo.sh ./scripts/test.sh) host_rust=no keep=no wheel=
while [ $# -gt 0 ]; do
    case $1 in
    --release) releases=("${2:?which release?}"); shift ;;
    --demo) commands=(./scripts/demo.sh) ;;
    --wheel)
        wheel=${2:?which file?}
        commands=("./scripts/demo.sh --wheel /root/$(basename "$wheel")")
        shift
        ;;
    --host-rust) host_rust=yes ;;
    --keep) keep=yes ;;
    *) die "unknown option: $1" ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || die "only root can make the roots"
for tool in mmdebstrap git unshare; do
    command -v $tool >/dev/null || die "$tool is missing: apt-get install mmdebstrap git util-linux"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-fresh.XXXXXX")
child=
# Runs a command with mounts and processes of its own, in the background, so that signals are heard meanwhile. Copies of
# this machine's FUSE mounts are given up: with them, what is unmounted here would not end before the command does.
isolated() {
    local status=0
    unshare --mount --mount-proc --pid --fork --kill-child --propagation private \
        bash -c 'umount --all --lazy --types fuse,fuse.volfs 2>/dev/null; exec "$@"' isolated "$@" &
    child=$!
    wait "$child" || status=$?
    child=
    return $status
}
tidy_up() {
    if [ -n "$child" ]; then
        # the end of their first process ends all others; unshare waits for that
        kill -KILL $(ps -o pid= --ppid "$child") 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    if [ $keep = yes ]; then say "kept: $work"; else rm -rf --one-file-system "$work"; fi
}
trap tidy_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs in the namespaces of a root, as their first process: when it ends, all others are ended and nothing is mounted.
# Arguments: the root, the folder of the host's Rust or nothing, the certificates of this machine or nothing, and a
# command line.
inside='
set -eu
root=$1 rust=$2 certificates=$3 line=$4
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty fuse; do
    [ -e /dev/$device ] || continue
    touch "$root/dev/$device"
    mount --bind /dev/$device "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${n%:*}" "$root/dev/${n#*:}"; done
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
trust=()
if [ -n "$certificates" ]; then
    touch "$root/etc/certificates-of-the-host.pem"
    mount --bind -o ro "$certificates" "$root/etc/certificates-of-the-host.pem"
    trust=(SSL_CERT_FILE=/etc/certificates-of-the-host.pem CARGO_HTTP_CAINFO=/etc/certificates-of-the-host.pem
        PIP_CERT=/etc/certificates-of-the-host.pem)
fi
if [ -n "$rust" ]; then
    mkdir -p "$root/opt/rust"
    mount --bind "$rust" "$root/opt/rust"
    mount -o remount,bind,ro "$root/opt/rust"
    path=/opt/rust/bin:$path
fi
proxies=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || proxies+=("$name=${!name}")
done
# the roots are built once: what cargo keeps for the next build would only fill the disk
chroot "$root" /usr/bin/env -i CARGO_INCREMENTAL=0 HOME=/root USER=root TERM=dumb LANG=C.UTF-8 PATH="$path" "${trust[@]}" "${proxies[@]}" \
    bash -c "cd /root/volfs && $line" </dev/null
'

rust=
if [ $host_rust = yes ]; then
    rust=$(cd "$repo" && rustc --print sysroot)
fi
say "$(date -u '+%F %T') UTC; commit $(git -C "$repo" log -1 --format='%h %s')"
[ -z "$(git -C "$repo" status --porcelain)" ] || warn "what is not committed is not in the checkout"
[ -e /dev/fuse ] || warn "this machine has no /dev/fuse: nothing is mounted, and the tests skip what needs a mount"

results=() failed=no
for release in "${releases[@]}"; do
    case $release in
    12) name=bookworm ;;
    13) name=trixie ;;
    *) die "no such release: $release; it is 12 or 13" ;;
    esac
    step "Debian $release: a root with nothing but the required packages"
    root=$work/$name
    isolated mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io "$name" "$root" || die "mmdebstrap cannot make a root of Debian $release"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # as the installer of Debian writes it
    printf '%s\n' '127.0.0.1 localhost' '::1 localhost ip6-localhost ip6-loopback' >"$root/etc/hosts"
    git clone --quiet "$repo" "$root/root/volfs"
    [ -z "$wheel" ] || cp "$wheel" "$root/root"
    say "Debian $(cat "$root/etc/debian_version"), $(find "$root/var/lib/dpkg/info" -name '*.list' | wc -l) packages"
    [ -z "$rust" ] || say "the Rust of this machine ($rust) is bound into it, read-only"
    for command in "${commands[@]}"; do
        step "Debian $release: $command"
        begin=$SECONDS
        if isolated bash -c "$inside" inside "$root" "$rust" "${SSL_CERT_FILE:-}" "$command"; then
            result=passed
        else
            result=FAILED failed=yes
        fi
        results+=("Debian $release  $result after $((SECONDS - begin)) s: $command")
    done
    [ $keep = yes ] || rm -rf --one-file-system "$root"
done

step "Summary"
printf '%s\n' "${results[@]}"
[ $failed = no ]
