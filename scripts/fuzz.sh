#!/usr/bin/env bash
# Runs the fuzz targets in turn, for ever or for some rounds, and logs what each run did. Installs cargo-fuzz if it is
# missing.
#
#     ./scripts/fuzz.sh [--minutes N] [--jobs N] [--rounds N] [--sanitizer NAME] [--nice N] [TARGET...]
#     ./scripts/fuzz.sh --minimise [TARGET...]
#     ./scripts/fuzz.sh --totals
#
# Each of the targets (default: all) runs for N minutes (default: 10), N of them at a time (default: 1), all of them N
# times (default: for ever), at nice N (default: 19). The sanitizer is `none` or, slower, `address`. Corpora grow in
# target/fuzzing/corpus (another folder than target/fuzzing: VOLFS_FUZZING); inputs that fail are kept in
# fuzz/artifacts; each run adds a line to target/fuzzing/runs.tsv: when it ended, target, seconds, executions, coverage
# (edges), features, inputs that failed so far, seconds of processor time.
#
# --minimise replaces the seeds of each target by the smallest inputs of seeds and corpus that cover the same;
# --totals adds up the runs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

minutes=10 jobs=1 rounds=0 sanitizer=none nice=19 minimise=no totals=no targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) minutes=$2; shift ;;
        --jobs) jobs=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --sanitizer) sanitizer=$2; shift ;;
        --nice) nice=$2; shift ;;
        --minimise) minimise=yes ;;
        --totals) totals=yes ;;
        -*) die "unknown option $1" ;;
        *) targets+=("$1") ;;
    esac
    shift
done

cd "$repo"
# the longest input of a target, and of a seed that is committed
longest=65536 longest_seed=12288
work=${VOLFS_FUZZING:-$(target_dir)/fuzzing}
runs=$work/runs.tsv
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd fuzz/fuzz_targets && ls | sed 's/\.rs$//')

# Prints the sums of all runs.
print_totals() {
    awk -F '\t' '
        { seconds[$2] += $3; executions[$2] += $4; if ($5 > edges[$2]) edges[$2] = $5; failed[$2] = $7; cpu[$2] += $8 }
        END {
            printf "%-16s %9s %9s %14s %8s %7s\n", "target", "minutes", "of a core", "executions", "edges", "failed"
            for (name in seconds) {
                line = "%-16s %9.1f %9.1f %14d %8d %7d\n"
                printf line, name, seconds[name] / 60, cpu[name] / 60, executions[name], edges[name], failed[name] | "sort"
            }
        }' "$runs"
}

if [ $totals = yes ]; then
    print_totals
    exit
fi

need_packages
need_libzfp_packages
need_rust
command -v cargo-fuzz >/dev/null || { say "installing: cargo-fuzz"; cargo install --quiet --locked cargo-fuzz; }

# The instrumentation of the compiler is unstable: stable Rust has it if it is told to forget that it is stable.
export CARGO_TARGET_DIR=$work/build-$sanitizer RUSTC_BOOTSTRAP=1
step "Building the targets"
cargo fuzz build --sanitizer "$sanitizer"
built=$(dirname "$(find "$CARGO_TARGET_DIR"/*/release -maxdepth 1 -name "${targets[0]}" -type f)")
bin=$work/bin-$sanitizer
mkdir -p "$bin"
for target in "${targets[@]}"; do
    cp --remove-destination "$built/$target" "$bin/"
done

# libdeflate defines some constants twice, which AddressSanitizer would report
export ASAN_OPTIONS=detect_odr_violation=0

# Prints the folders of a target's inputs that exist; libFuzzer adds what it finds to the first.
folders() {
    mkdir -p "$work/corpus/$1"
    printf '%s\n' "$work/corpus/$1"
    ls -d "fuzz/seeds/$1" "fuzz/regressions/$1" 2>/dev/null || true
}

minimise() {
    local target=$1 new=$work/minimised/$1 inputs
    mapfile -t inputs < <(folders "$target")
    rm -rf "$new"
    mkdir -p "$new"
    "$bin/$target" -set_cover_merge=1 -use_counters=0 -max_len=$longest_seed "$new" "${inputs[@]}" \
        >"$work/minimise.$target.log" 2>&1
    rm -rf "fuzz/seeds/$target"
    mkdir -p "fuzz/seeds/$target"
    cp "$new"/* "fuzz/seeds/$target/"
    say "$target: $(ls "fuzz/seeds/$target" | wc -l) seeds, $(du -sb "fuzz/seeds/$target" | cut -f 1) bytes"
}

# Runs a target once.
run() {
    local target=$1 log=$work/log/$1.log inputs status=0
    mapfile -t inputs < <(folders "$target")
    mkdir -p "$work/log" "fuzz/artifacts/$target"
    local TIMEFORMAT='%U %S'
    { time nice -n "$nice" "$bin/$target" -max_total_time=$((60 * minutes)) -max_len=$longest -timeout=30 \
        -report_slow_units=30 -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=1 \
        -artifact_prefix="fuzz/artifacts/$target/" "${inputs[@]}" >"$log" 2>&1; } 2>"$log.time" || status=$?
    local executions failed edges features processor
    processor=$(awk 'END { print int($1 + $2) }' "$log.time")
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    read -r edges features < <(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1 | awk '{ print $2, $4 }') || true
    failed=$(find "fuzz/artifacts/$target" -type f ! -name 'slow-unit-*' | wc -l)
    printf '%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n' "$(date -u +%FT%TZ)" "$target" "$SECONDS" "${executions:-0}" \
        "${edges:-0}" "${features:-0}" "$failed" "$processor" >>"$runs"
    [ $status = 0 ] || { cp "$log" "$log.failed.$(date +%s)"; say "$target: FAILED, see $log"; }
}

if [ $minimise = yes ]; then
    step "Minimising the corpora"
    for target in "${targets[@]}"; do
        minimise "$target"
    done
    exit
fi

step "Fuzzing"
for ((round = 1; rounds == 0 || round <= rounds; round++)); do
    for target in "${targets[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
            wait -n || true
        done
        (SECONDS=0; run "$target") &
    done
done
wait
print_totals
