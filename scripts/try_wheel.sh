#!/usr/bin/env bash
# Installs a wheel where nothing of this checkout and no Rust is at hand, and tries the program and the module: in a new
# virtual environment, and with --root in a new root of Debian that has Python and nothing else (needs root, and the
# packages mmdebstrap and git).
#
#     ./scripts/try_wheel.sh [--root 12|13] [WHEEL]      default WHEEL: the newest in target/wheels
set -euo pipefail
. "$(dirname "$0")/lib.sh"

release=
if [ "${1:-}" = --root ]; then
    release=${2:?which release?}
    shift 2
fi
wheel=${1:-$(ls -t "$(target_dir)"/wheels/volfs-*.whl 2>/dev/null | head -n 1)}
[ -f "$wheel" ] || die "there is no wheel; make one: ./scripts/make_wheel.sh"
why=$(why_no_fuse)
[ -z "$why" ] || die "this machine cannot mount: $why"

work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-wheel.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/here"
cp "$wheel" "$work/here"
cp -r "$repo/tests/data/demo" "$work/here/data"

# What a new user would type. The first argument is a folder with the wheel and the data, the others are options of pip.
cat >"$work/here/session" <<'SESSION'
set -eu
here=$1
shift
cd "$here"
python3 -m venv environment
environment/bin/pip install --quiet --disable-pip-version-check "$@" "$(echo "$here"/volfs-*.whl)[dask]"
PATH=$here/environment/bin:$PATH
for tool in cargo rustc; do ! command -v $tool || { echo "$tool is there"; exit 1; }; done
command -v volfs
volfs --version
volfs --help | head -n 1
mkdir mnt
volfs mount data mnt
python -c 'import numpy as np; print(np.load("mnt/north.zgy/data/lod0.npy", mmap_mode="r")[64, 48, 90:96])'
python - <<'PYTHON'
import os, xarray, volfs
from importlib import metadata
assert os.path.realpath(volfs.program()) == os.path.realpath("environment/bin/volfs"), volfs.program()
print("volfs", volfs.__version__, "xarray", xarray.__version__)
assert any(file.name == "THIRD-PARTY.txt" for file in metadata.files("volfs")), "the licences of the program are missing"
place = xarray.open_dataset("mnt/cells", engine="volfs")
print(dict(place.sizes), int(place.segmentation.max()))
with volfs.mount("data") as mount:
    print(*mount.datasets)
layer = volfs.open("data/north.zgy").layer
slice = layer.lod(0, first_axis="sample")[90]
assert (slice == layer.level(0)[..., 90]).all()
print(slice.shape, slice.mean())
for name in ["north.zgy", "south.vds", "cloud-survey", "cells"]:
    with xarray.open_dataset(f"data/{name}", engine="volfs", chunks={}) as dataset:
        print(name, {key: float(value) for key, value in dataset.mean().compute().items()})
PYTHON
volfs umount mnt
python -m volfs doctor
SESSION

step "In a new virtual environment"
env -i HOME="$work" PATH=/usr/bin:/bin LANG=C.UTF-8 SSL_CERT_FILE="${SSL_CERT_FILE:-}" PIP_CERT="${PIP_CERT:-}" \
    bash "$work/here/session" "$work/here"
[ -n "$release" ] || exit 0

case $release in
12) name=bookworm version=3.11 ;;
13) name=trixie version=3.13 ;;
*) die "no such release: $release; it is 12 or 13" ;;
esac
step "In a new root of Debian $release"
# Copies of this machine's FUSE mounts are given up: with them, what is unmounted here would not end before the command.
isolated() {
    unshare --mount --mount-proc --pid --fork --kill-child --propagation private \
        bash -c 'umount --all --lazy --types fuse,fuse.volfs 2>/dev/null; exec "$@"' isolated "$@"
}
isolated mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --include=python3-venv "$name" "$work/root"
# The root does not need the network.
"$work/here/environment/bin/pip" download --quiet --disable-pip-version-check --only-binary=:all: --python-version $version \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --dest "$work/root/opt/packages" "$wheel[dask]"
mkdir "$work/root/opt/wheel"
cp -r "$work"/here/{data,session,volfs-*.whl} "$work/root/opt/wheel"
isolated bash -c '
mount -t proc proc "$1/proc"
mount -t tmpfs dev "$1/dev"
for device in null zero urandom random fuse; do touch "$1/dev/$device"; mount --bind /dev/$device "$1/dev/$device"; done
mkdir "$1/dev/shm"
mount -t tmpfs shm "$1/dev/shm"
chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 \
    bash /opt/wheel/session /opt/wheel --no-index --find-links /opt/packages
' inside "$work/root"
