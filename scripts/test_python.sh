#!/usr/bin/env bash
# Tests the Python module against this checkout: formatting, types, and python/tests, also on real mounts. What Python needs
# is installed into the target folder of cargo, by pip or else from Debian's packages; where neither can be had, or
# nothing can be mounted, one line says so and the script succeeds.
#
#     ./scripts/test_python.sh [ARGUMENTS OF PYTEST]
#
# The environment can name another program and another extension: VOLFS=/path/to/volfs VOLFS_EXTENSION=/path/to/lib_volfs.so.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$repo"

skip() {
    say "Python tests   SKIPPED: $*"
    exit 0
}

# has MODULE...: succeeds if $python has these modules.
has() { "$python" -c "import $(IFS=,; printf '%s' "$*")" 2>/dev/null; }

# Makes a virtual environment with what the tests need, or keeps the one that is there.
make_environment() {
    local stamp=$work/environment/installed
    python=$work/environment/bin/python
    if ! cmp -s python/tests/requirements.txt "$stamp" || ! has numpy xarray dask pytest; then
        say "installing: $(grep -v '^#' python/tests/requirements.txt | paste -s -d ' ')"
        rm -rf "$work/environment"
        python3 -m venv "$work/environment" 2>/dev/null || { apt_install python3-venv && python3 -m venv "$work/environment"; } || return 1
        timeout 600 "$python" -m pip install --quiet --disable-pip-version-check --retries 1 -r python/tests/requirements.txt \
            >"$work/pip.log" 2>&1 || return 1
        cp python/tests/requirements.txt "$stamp"
    fi
}

why=$(why_no_fuse)
[ -z "$why" ] || skip "$why"
target=$(target_dir)
work=$target/python-tests
mkdir -p "$work"
if ! make_environment; then
    rm -rf "$work/environment"
    python=/usr/bin/python3
    { [ -x $python ] && has numpy pytest; } || apt_install python3 python3-numpy python3-pytest python3-xarray python3-dask \
        || skip "neither pip nor Debian can install NumPy and pytest here"
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "the module needs Python 3.11 or newer"

# The program and the extension, in debug builds.
if [ -z "${VOLFS:-}" ]; then
    cargo build --quiet
    export VOLFS=$target/debug/volfs
fi
if [ -z "${VOLFS_EXTENSION:-}" ]; then
    cargo build --quiet --package volfs-python
    VOLFS_EXTENSION=$target/debug/lib_volfs.so
fi

# The module as if it was installed: with the extension, and with the entry points by which xarray and napari find it.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
installed=$work/path/volfs-$version.dist-info
rm -rf "$work/path"
mkdir -p "$installed" "$work/path/volfs"
ln -s "$repo"/python/volfs/* "$work/path/volfs"
ln -s "$(realpath "$VOLFS_EXTENSION")" "$work/path/volfs/_volfs.abi3.so"
printf 'Metadata-Version: 2.1\nName: volfs\nVersion: %s\n' "$version" >"$installed/METADATA"
sed -n '/^\[project.entry-points\."/,/^$/{s/^\[project.entry-points\."\(.*\)"\]$/[\1]/; s/ = "\(.*\)"$/ = \1/; p}' pyproject.toml \
    >"$installed/entry_points.txt"
export PYTHONPATH=$work/path PYTHONDONTWRITEBYTECODE=1

if has ruff mypy; then
    "$python" -m ruff check --quiet --no-cache python
    "$python" -m ruff format --quiet --check --no-cache python
    "$python" -m mypy --cache-dir "$work/mypy" --no-error-summary
else
    say "Python types   SKIPPED: mypy and ruff are not installed"
fi
"$python" -m pytest -q -p no:cacheprovider "$@"
