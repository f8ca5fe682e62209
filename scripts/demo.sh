#!/usr/bin/env bash
# Mounts the bundled volumes and reads them with ordinary tools. Installs missing packages (Debian 12 and 13).
#
#     ./scripts/demo.sh [--wheel FILE] [--verbose]
#         --wheel FILE     takes volfs from a wheel (of a release, or of scripts/make_wheel.sh) and does not build it
#         --verbose        also shows every file, more of each format, all that is known of a survey
#
# The program stays in target/demo/bin; with a wheel that is a virtual environment of Python.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

verbose=no wheel=
while [ $# -gt 0 ]; do
    case $1 in
    --verbose) verbose=yes ;;
    --wheel) wheel=${2:?which file?}; shift ;;
    *) die "unknown option: $1 (there are --wheel FILE and --verbose)" ;;
    esac
    shift
done

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

# Prints how far a build is, from what cargo says: on a terminal one line that is rewritten, else a line each half minute.
# The argument is the number of crates.
progress() {
    local all=$1 crate=0 name= line text status begin=$SECONDS next=30
    while true; do
        status=0
        read -r -t 1 line || status=$?
        # more than 128: a second without a line
        [ $status = 0 ] || [ $status -gt 128 ] || break
        if [[ $status = 0 && $line = "Compiling "* ]]; then
            name=${line#Compiling } name=${name%% *} crate=$((crate + 1))
        fi
        text="building volfs: crate $crate of $all${name:+ ($name)}, $((SECONDS - begin)) s"
        if [ -t 1 ]; then
            printf '\r%-70s' "$text"
        elif [ $((SECONDS - begin)) -ge $next ]; then
            say "$text"
            next=$((next + 30))
        fi
    done
    [ ! -t 1 ] || printf '\r%-70s\r' ''
}

# Builds the program, and puts it where it stays: for a quick look, with what the bundled volumes need.
build() {
    local crates begin features=(--no-default-features --features serve) build
    build=(cargo build --locked --profile quick "${features[@]}" --bin volfs)
    need_packages
    need_rust
    cd "$repo"
    if [ $verbose = yes ]; then
        part "Building volfs"
        show "${build[*]}"
    else
        say "building volfs: some minutes the first time"
        begin=$SECONDS
        crates=$(cargo tree --locked --quiet "${features[@]}" --edges normal,build --prefix none --no-dedupe --format '{p}' \
            | sort -u | wc -l)
        "${build[@]}" --color never 2>&1 | tee "$work/log" | progress "$crates" || {
            grep -v '^ *Compiling ' "$work/log" >&2
            die "volfs cannot be built"
        }
        say "built in $((SECONDS - begin)) s"
    fi
    rm -rf "$place"
    mkdir -p "$place/bin"
    ln -s "$(target_dir)/quick/volfs" "$place/bin/volfs"
    note="It was built for a quick look: slower than it can be, and without object stores. For the whole program:
    cargo install --locked --path ."
}

# Installs the wheel into a virtual environment; NumPy is that of the system, of the package index or of Debian.
install_wheel() {
    local environment=(python3 -m venv --clear --system-site-packages "$place") pip
    [ -f "$wheel" ] || die "there is no file $wheel: a release has a wheel, and ./scripts/make_wheel.sh makes one in target/wheels"
    [ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null || need_installed fuse3
    if ! "${environment[@]}" &>"$work/log"; then
        need_installed python3-venv python3-numpy
        "${environment[@]}"
    fi
    say "installing: $wheel"
    pip=("$place/bin/python" -m pip install --quiet --disable-pip-version-check)
    "$place/bin/python" -c 'import numpy' 2>/dev/null || "${pip[@]}" --retries 1 numpy || need_installed python3-numpy
    "${pip[@]}" --no-index "$wheel" || die "pip cannot install $wheel"
}

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

note=
place=${CARGO_TARGET_DIR:-$repo/target}/demo
if [ -n "$wheel" ]; then install_wheel; else build; fi
PATH=$place/bin:$PATH
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
[ -z "$note" ] || say "$note"
