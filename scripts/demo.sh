#!/usr/bin/env bash
# Builds volfs, mounts the bundled volumes and reads them with ordinary tools. Installs missing packages (Debian 12 and
# 13).
#
#     ./scripts/demo.sh [--verbose]      with --verbose also: every file, more of each format, all that is known of a survey
set -euo pipefail
. "$(dirname "$0")/lib.sh"

verbose=no
case "$*" in
"") ;;
--verbose) verbose=yes ;;
*) die "unknown option: $* (there is only --verbose)" ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-demo.XXXXXX")
mounted=no
tidy_up() {
    local status=$?
    if [ $mounted = yes ]; then
        volfs umount --lazy "$work/mnt" 2>/dev/null || true
    fi
    cd / && rm -rf --one-file-system "$work"
    exit $status
}
trap tidy_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints the heading of the next part; no blank line behind it, so that all fits a screen.
part() { printf '\n== %s\n' "$*"; }

# What only --verbose shows; the mount stands, and is in the current folder.
show_more() {
    if command -v getfattr >/dev/null; then
        step "The description of the array in extended attributes"
        show "getfattr --absolute-names -d $survey/data/lod0.raw"
    fi

    if [ -n "$python" ]; then
        step "A microscopy volume and its segmentation (webKNOSSOS), read with NumPy"
        cat >"cells.py" <<'PYTHON'
import json
import sys
import numpy as np

cells = sys.argv[1]
for lod in range(3):
    about = json.load(open(f"{cells}/color/lod{lod}.json"))
    print("lod", lod, "is mag", about["wkw"]["mag"], about["shape"], about["codec"], about["wkw"]["voxel_size"], about["wkw"]["unit"])
color = np.load(f"{cells}/color/lod0.npy", mmap_mode="r")
ids = np.load(f"{cells}/segmentation/lod0.npy", mmap_mode="r")
plane, plane_ids = color[48], ids[48]
found, sizes = np.unique(plane_ids[plane_ids > 0], return_counts=True)
largest = found[sizes.argmax()]
print("plane 48: %d cells; the largest is %d, with a mean of %.1f (all voxels: %.1f)" % (
    len(found), largest, plane[plane_ids == largest].mean(), plane.mean()))
PYTHON
        show "$python cells.py $mnt/cells"
    fi

    if [ -n "$python" ]; then
        step "A survey in VDS, as one file and as a folder of objects, read with NumPy"
        cat >"south.py" <<'PYTHON'
import json
import sys
import numpy as np

for name in ("south.vds", "cloud-survey"):
    survey = f"{sys.argv[1]}/{name}"
    about = json.load(open(f"{survey}/Amplitude/lod0.json"))
    cube = np.load(f"{survey}/Amplitude/lod0.npy", mmap_mode="r")
    headers = np.load(f"{survey}/SEGYTraceHeader/lod0.npy", mmap_mode="r")
    live = np.load(f"{survey}/Trace/lod0.npy", mmap_mode="r")
    print("%-12s" % name, cube.shape, cube.dtype, about["codec"], "RMS %.1f" % np.sqrt(np.mean(np.square(cube[10], dtype=np.float64))))
    print("   %d live traces; bytes 189 to 196 of the last trace header: %d, %d" % (
        np.count_nonzero(live), *headers[-1, -1, 188:196].view(">i4")))
PYTHON
        show "$python south.py $mnt"
    fi
}

need_packages
need_rust
cd "$repo"
if [ $verbose = yes ]; then
    part "Building volfs"
    show "cargo build --release"
else
    say "building volfs: two or three minutes the first time"
    cargo build --release --quiet
fi
PATH=$(target_dir)/release:$PATH
demo=$repo/tests/data/demo

why=$(why_no_fuse)
if [ -n "$why" ]; then
    part "This machine cannot mount; what the bundled folder has"
    show "volfs ls $demo"
    die "this machine cannot mount: $why"
fi
if [ -z "$(numpy_python)" ]; then
    apt_install python3-numpy || warn "python3-numpy cannot be installed; continuing without it"
fi
python=$(numpy_python)

# short names in what is shown
cd "$work"
mkdir mnt
mnt=mnt
survey=$mnt/north.zgy

part "A folder with seismic and microscopy volumes, mounted"
mounted=yes
show "volfs mount $demo $mnt"
show "ls -m $mnt"
show "ls -m $survey/data"

if [ $verbose = yes ]; then
    part "The datasets and their layers"
    show "volfs ls $demo"
    part "The files of the mount, with their sizes"
    show "find $mnt -type f -printf '%10s  %P\n' | sort -k 2"
    part "Description of the survey"
    show "volfs info $demo/north.zgy"
fi

read -r inlines crosslines samples <<<"$(json_value "$survey/data/lod0.json" shape)"
read -r inline_bytes _ <<<"$(json_value "$survey/data/lod0.json" strides)"
size=$(json_value "$survey/data/lod0.json" size)
part "One inline by dd: $crosslines x $samples samples, $(json_value "$survey/data/lod0.json" dtype), are $inline_bytes bytes"
show "dd if=$survey/data/lod0.raw of=inline20.raw bs=$inline_bytes skip=20 count=1"
[ "$(stat -c %s inline20.raw)" = "$inline_bytes" ] || die "the size of the inline differs from lod0.json"
[ "$(stat -c %s "$survey/data/lod0.raw")" = "$size" ] || die "the size of lod0.raw differs from lod0.json"
if [ $verbose = yes ]; then
    show "od -A d -t f4 -w16 -j 400 -N 64 inline20.raw"
fi

if [ -n "$python" ]; then
    part "One crossline by NumPy, and the inline once more (slices.py)"
    cat >slices.py <<'PYTHON'
import numpy as np
cube = np.load("mnt/north.zgy/data/lod0.npy", mmap_mode="r")
print(cube.shape, cube.dtype, "the maximum of crossline 48 is", cube[:, 48].max())
print("the same as dd read:", np.array_equal(cube[20].ravel(), np.fromfile("inline20.raw", cube.dtype)))
PYTHON
    cat slices.py
    show "$python slices.py" | tee slices.txt
    grep -q 'dd read: True$' slices.txt || die "NumPy and dd read different samples"

    part "A picture of it: crosslines to the right, time downwards"
    "$python" "$repo/scripts/show_plane.py" "$survey/data/lod0.npy" 20
fi

if [ $verbose = yes ]; then
    show_more
fi

volfs umount $mnt
mounted=no
cat <<END

Unmounted. To mount data of your own, which volfs never changes (more: README.md, ./scripts/demo.sh --verbose):
    $(command -v volfs) mount FOLDER MOUNTPOINT
END
