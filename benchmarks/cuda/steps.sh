# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# shellcheck shell=bash
# Functions for benchmarks/cuda/run: steps that each have a time limit, and the table of them at the end. Sourced.

step_rows=()  # "result|seconds|name|note"
step_report=/dev/null

# say TEXT...: a line on the screen and in the report.
say() {
  echo "$*" | tee -a "$step_report"
}

# count_cases FILE: how many test cases of doctest ran, and how many there were. Empty if the program has none. A
# skipped test prints a line and counts as passed in doctest's own sum.
count_cases() {
  awk '
    /^SKIPPED: / { ++skipped }
    /^\[doctest\] test cases:/ { all += $4; found = 1 }
    END { if (found) print (skipped < all ? all - skipped : 0), all }
  ' "$1"
}

# show FILE: its text, where equal lines about skipped tests are one line.
show() {
  awk '
    /^SKIPPED: / { ++skipped[$0]; next }
    { print }
    END { for (line in skipped) printf "%d x %s\n", skipped[line], line }
  ' "$1"
}

# step NAME LIMIT COMMAND...: runs the command for at most LIMIT seconds. Its result is one of
#   passed     it ended with 0; or a test program ended with 77, and at least one of its tests ran
#   skipped    it ended with 77
#   timed out  it was stopped at the limit
#   failed     anything else, also a command that is not there, and a test program of which no test ran
# What it says goes to the screen and to the report. Always returns 0, so that the next step follows.
step() {
  local name=$1 limit=$2 code=0 begin=$SECONDS result note=''
  shift 2
  say "== $name (at most $limit s): ${*//"$PWD/"/}"
  local out
  out=$(mktemp)
  timeout -k 10 "$limit" "$@" > "$out" 2>&1 < /dev/null || code=$?
  local seconds=$((SECONDS - begin)) cases
  show "$out" | tee -a "$step_report"
  cases=$(count_cases "$out")
  case $code in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137) result='timed out' ;;
    126 | 127) result=failed note='it could not be started: was it built?' ;;
    *) result=failed note="exit status $code" ;;
  esac
  # No test may look as if it had passed because there was nothing for it to do.
  if [[ -n $cases && ($code == 0 || $code == 77) ]]; then
    result=passed note="${cases% *} of ${cases#* } tests ran"
    [[ ${cases% *} != 0 ]] || result=failed
  elif [[ $result == skipped ]]; then
    note=$(grep -m 1 -i skipped "$out" || true)
  fi
  rm -f -- "$out"
  step_rows+=("$result|$seconds|$name|$note")
  say "-- $name: $result${note:+, $note}"
  say ''
}

# skip NAME WHY: a step that cannot be done here.
skip() {
  step_rows+=("skipped|0|$1|$2")
  say "-- $1: skipped, $2"
  say ''
}

# end_steps: prints the table. Returns 1 if a step failed or was stopped, or if none passed.
end_steps() {
  local row result seconds name note passed=0 bad=0
  say "$(printf '%-10s %7s  %-44s %s' result seconds step '')"
  for row in "${step_rows[@]}"; do
    IFS='|' read -r result seconds name note <<< "$row"
    say "$(printf '%-10s %7s  %-44s %s' "$result" "$seconds" "$name" "$note")"
    case $result in
      passed) passed=$((passed + 1)) ;;
      failed | 'timed out') bad=$((bad + 1)) ;;
    esac
  done
  say ''
  say "${#step_rows[@]} steps: $passed passed, $bad failed or timed out, $((${#step_rows[@]} - passed - bad)) skipped"
  if ((bad > 0)); then
    say "FAILED: $bad of ${#step_rows[@]} steps did not pass."
    return 1
  elif ((passed == 0)); then
    say 'FAILED: every step was skipped.'
    return 1
  fi
}
