#!/usr/bin/env bash
# Builds volfs, mounts the bundled volumes and reads them with ordinary tools. Installs missing packages (Debian 12 and
# 13).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

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

step "Building volfs"
need_packages
need_rust
show "cd $repo"
show "cargo build --release"
PATH=$(target_dir)/release:$PATH

why=$(why_no_fuse)
if [ -n "$why" ]; then
    step "Description of the bundled survey"
    show "volfs info tests/data/demo/north.zgy"
    die "this machine cannot mount: $why"
fi
if [ -z "$(numpy_python)" ]; then
    apt_install python3-numpy || warn "python3-numpy cannot be installed; continuing without it"
fi

step "Mounting the folder with the bundled volumes: a ZGY file of $(stat -c %s tests/data/demo/north.zgy) bytes, VDS as a file and as a folder, and a WKW folder"
mkdir "$work/mnt"
mnt=$work/mnt
survey=$mnt/north.zgy
mounted=yes
show "volfs mount tests/data/demo $mnt"

step "The files of the mount, with their sizes"
show "find $mnt -type f -printf '%10s  %P\n' | sort -k 2"

step "Description of the survey"
show "volfs info tests/data/demo/north.zgy"

step "One inline, read with dd"
read -r inlines crosslines samples <<<"$(json_value "$survey/data/lod0.json" shape)"
read -r inline_bytes _ <<<"$(json_value "$survey/data/lod0.json" strides)"
size=$(json_value "$survey/data/lod0.json" size)
say "lod0.json describes $inlines inlines x $crosslines crosslines x $samples samples of type $(json_value "$survey/data/lod0.json" dtype);"
say "one inline has $inline_bytes bytes."
say
show "dd if=$survey/data/lod0.raw of=$work/inline20.raw bs=$inline_bytes skip=20 count=1 status=none"
show "stat -c '%s bytes  %n' $work/inline20.raw $survey/data/lod0.raw"
[ "$(stat -c %s "$work/inline20.raw")" = "$inline_bytes" ] || die "the size of the inline differs from lod0.json"
[ "$(stat -c %s "$survey/data/lod0.raw")" = "$size" ] || die "the size of lod0.raw differs from lod0.json"
show "od -A d -t f4 -w16 -j 400 -N 64 $work/inline20.raw"

python=$(numpy_python)
if [ -n "$python" ]; then
    step "One crossline, read with NumPy"
    cat >"$work/crossline.py" <<'PYTHON'
import sys
import numpy as np

cube = np.load(sys.argv[1] + "/data/lod0.npy", mmap_mode="r")
print("cube      ", cube.shape, cube.dtype)
crossline = cube[:, 48, :]
print("crossline ", crossline.shape, "from %.1f to %.1f, RMS %.1f" % (
    crossline.min(), crossline.max(), np.sqrt(np.mean(np.square(crossline, dtype=np.float64)))))
inline = np.fromfile(sys.argv[2], dtype=cube.dtype).reshape(cube.shape[1:])
print("inline 20  equals the one that dd read:", np.array_equal(cube[20], inline))
PYTHON
    show "cat $work/crossline.py"
    say
    show "$python $work/crossline.py $survey $work/inline20.raw"
fi

if command -v getfattr >/dev/null; then
    step "The description of the array in extended attributes"
    show "getfattr --absolute-names -d $survey/data/lod0.raw"
fi

if [ -n "$python" ]; then
    step "A microscopy volume and its segmentation (webKNOSSOS), read with NumPy"
    cat >"$work/cells.py" <<'PYTHON'
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
    show "$python $work/cells.py $mnt/cells"
fi

if [ -n "$python" ]; then
    step "A survey in VDS, as one file and as a folder of objects, read with NumPy"
    cat >"$work/south.py" <<'PYTHON'
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
    show "$python $work/south.py $mnt"
fi

step "Unmounting"
show "volfs umount $mnt"
mounted=no

step "Your own data"
cat <<END
Mount any folder with ZGY files, VDS or WKW datasets, or a single dataset; volfs never changes it:

    mkdir -p ~/volumes
    $(command -v volfs) mount FOLDER ~/volumes
    ls ~/volumes
    $(command -v volfs) umount ~/volumes

For more see README.md and docs/.
END
