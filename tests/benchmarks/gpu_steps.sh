#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash gpu_steps.sh ROOT
#
# The steps of benchmarks/cuda/run: which result a command has, that the next step follows, and when all of it fails.
set -euo pipefail
cd -- "$1"
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

faults=0
# gives RESULT NOTE COMMAND...: of a step with a limit of one second.
gives() {
  local wanted="$1|$2"
  shift 2
  local found
  found=$(
    source benchmarks/cuda/steps.sh
    step name 1 "$@" > "$scratch/out"
    IFS='|' read -r result seconds name note <<< "${step_rows[0]}"
    echo "$result|$note"
  )
  [[ $found == "$wanted" ]] || { echo "FAULT: $*: expected $wanted, found $found"; faults=$((faults + 1)); }
}
# ends CODE LAST COMMAND...: a run of these commands, each a step.
ends() {
  local wanted=$1 last=$2 code=0
  shift 2
  (
    source benchmarks/cuda/steps.sh
    step_report=$scratch/report
    for command; do step "$command" 1 bash -c "$command"; done
    end_steps
  ) > "$scratch/out" 2>&1 || code=$?
  if [[ $code != "$wanted" ]] || ! tail -n 1 "$scratch/out" | grep -qF -- "$last"; then
    echo "FAULT: $*: expected $wanted and \"$last\", found $code and $(cat "$scratch/out")"
    faults=$((faults + 1))
  fi
  cmp -s "$scratch/out" "$scratch/report" || { echo "FAULT: $*: the report is another text"; faults=$((faults + 1)); }
  rm -f -- "$scratch/report"
}
# doctest ALL SKIPPED CODE: what a test program prints, and its exit status.
doctest() {
  echo "for ((i = 0; i < $2; ++i)); do echo 'SKIPPED: no CUDA device'; done
    echo '[doctest] test cases: $1 | $1 passed | 0 failed | 0 skipped'; exit $3"
}

gives passed '' true
gives failed 'exit status 1' false
gives failed 'exit status 139' bash -c 'exit 139'
gives 'timed out' '' sleep 20
gives 'timed out' '' bash -c 'exit 137'
gives skipped 'lanes skipped: needs 1 GPU' bash -c 'echo lanes skipped: needs 1 GPU; exit 77'
gives failed 'it could not be started: was it built?' "$scratch/nothing"
gives passed '3 of 5 tests ran' bash -c "$(doctest 5 2 77)"
gives passed '5 of 5 tests ran' bash -c "$(doctest 5 0 0)"
gives failed '0 of 5 tests ran' bash -c "$(doctest 5 5 77)"
gives failed '0 of 0 tests ran' bash -c "$(doctest 0 0 0)"
gives failed 'exit status 1' bash -c "$(doctest 5 2 1)"

ends 0 '2 steps: 1 passed, 0 failed or timed out, 1 skipped' true 'exit 77'
ends 1 'FAILED: 1 of 3 steps did not pass.' true false true
ends 1 'FAILED: 1 of 2 steps did not pass.' 'sleep 20' true
ends 1 'FAILED: every step was skipped.' 'exit 77' 'exit 77'
((faults == 0)) || exit 1
echo 'all as it should be'
