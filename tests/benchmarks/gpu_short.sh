#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash gpu_short.sh ROOT BUILD
#
# benchmarks/cuda/run --short with the stand-in's programs of a build: each step has a row, what cannot run says why, a
# step that fails makes the run fail, and folders that are missing are refused.
set -euo pipefail
run=$1/benchmarks/cuda/run build=$2
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
faults=0
fault() {
  echo "FAULT: $*"
  faults=$((faults + 1))
}
# short CODE TEXT FOLDER OUT [SECONDS]: the exit status, and a part of what it prints, with that time in all.
short() {
  local code=0 found
  found=$(env -i ${ASAN_OPTIONS:+"ASAN_OPTIONS=$ASAN_OPTIONS"} ${TSAN_OPTIONS:+"TSAN_OPTIONS=$TSAN_OPTIONS"} \
    FANOUT_SHORT_QUICK=1 ${5:+"FANOUT_SHORT_SECONDS=$5"} "$BASH" "$run" --short "$3" "$4" 2>&1) || code=$?
  [[ $code == "$1" && $found == *"$2"* ]] || fault "expected $1 and \"$2\", found $code and $found"
}

short 1 'there is no folder' "$scratch/nothing" "$scratch/out"
mkdir "$scratch/empty"
short 1 'was not filled by' "$scratch/empty" "$scratch/out"
"$BASH" "$run" --prebuild "$scratch/folder" --stand-in "$build"
: > "$scratch/file"
short 1 'cannot write to the folder' "$scratch/folder" "$scratch/file"

short 0 '23 steps, 0 failed or timed out' "$scratch/folder" "$scratch/out"
cat "$scratch/out/report.txt"
for wanted in 'skipped .* check_gpus .*needs a kernel' 'ok .* calls' 'ok .* calls, loaded eagerly' 'ok .* entered' \
  'ok .* overlap_temporaries' 'ok .* probe downloads' 'ok .* probe pinned' 'skipped .* test_cu .*is not in the folder' \
  'skipped .* green contexts .*no green contexts' 'for the stand-in, from' '4 KiB there and back, 1 device'; do
  grep -q -- "$wanted" "$scratch/out/report.txt" || fault "the report has no line \"$wanted\""
done
ls "$scratch"/out/cuda_short_stand_in_*.txt > /dev/null || fault 'there is no file to commit'

# Programs that do nothing but what is said here.
for name in benchmark_cuda probes gpu_lines; do cp -- "$(type -P true)" "$scratch/folder/$name"; done
printf '#!/bin/bash\necho first\nexit 3\n' > "$scratch/folder/probes"
echo an earlier run > "$scratch/out/99_old.txt"
short 1 'exit status 3: first' "$scratch/folder" "$scratch/out"
! grep -q 'an earlier run' "$scratch/out/report.txt" || fault 'the report has lines of an earlier run'
printf '#!/bin/bash\necho begun\nexec sleep 60\n' > "$scratch/folder/probes"
short 1 'stopped at 7 s' "$scratch/folder" "$scratch/out" 68
grep -q '^begun' "$scratch/out/report.txt" || fault 'the report lacks what a stopped step printed'
grep -q 'skipped .* calls .*no time: at ' "$scratch/out/report.txt" || fault 'a step that does not fit is not in the report'
printf '#!/bin/bash\necho no GPU\nexit 1\n' > "$scratch/folder/check_gpus"
chmod +x "$scratch/folder/check_gpus"
short 1 'no kernel runs: no GPU' "$scratch/folder" "$scratch/out"
((faults == 0)) || exit 1
echo 'all as it should be'
