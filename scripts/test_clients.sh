#!/usr/bin/env bash
# Reads mounts of the test data with the programs that the views are made for: tests/clients, on real mounts. Installs
# these programs with pip into the target folder of cargo: 1.4 GB, once. It is no part of scripts/test.sh for that
# reason.
#
#     ./scripts/test_clients.sh [ARGUMENTS OF PYTEST]
#
# The environment can name another program to test: VOLFS=/path/to/volfs; and another Python that has clients:
# CLIENTS_PYTHON=/path/to/python. A client that is not installed is skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$repo"

why=$(why_no_fuse)
[ -z "$why" ] || { say "client tests   SKIPPED: $why"; exit 0; }
target=$(target_dir)
work=$target/clients
mkdir -p "$work"

# Installs into the virtual environment whatever its list names; pip leaves alone what is there.
make_environment() {
    local list=tests/clients/requirements.txt
    cmp -s $list "$work/environment/installed" && return
    say "installing into $work/environment: $(grep -v '^#' $list | paste -s -d ' ')"
    [ -x "$python" ] || python3 -m venv "$work/environment" 2>/dev/null \
        || { apt_install python3-venv && python3 -m venv "$work/environment"; } || return 1
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 -r $list >"$work/pip.log" 2>&1 || return 1
    cp $list "$work/environment/installed"
}

python=${CLIENTS_PYTHON:-}
if [ -z "$python" ]; then
    python=$work/environment/bin/python
    make_environment || die "pip cannot install the clients: $(tail -n 1 "$work/pip.log")"
fi
if [ -z "${VOLFS:-}" ]; then
    cargo build --quiet
    export VOLFS=$target/debug/volfs
fi
export PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
"$python" -m pytest -q -rs --disable-warnings -p no:cacheprovider --rootdir tests/clients "$@" tests/clients
