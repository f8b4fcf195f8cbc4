#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash tests/examples/tutorial.sh PROGRAM [TIMES]
#
# The tutorial prints, with two devices, exactly the text of the classic demonstration, every time (100 times unless TIMES
# says otherwise); with other numbers of devices its lines are whole, in their places, and add up.
set -euo pipefail
program=$1
times=${2:-100}

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

expected="Let's use 2 devices!"
for rows in 30 30 30 10; do
  half=$((rows / 2))
  for _ in 1 2; do expected+=$'\n\t'"In Model: input size [$half, 5] output size [$half, 2]"; done
  expected+=$'\n'"Outside: input size [$rows, 5] output_size [$rows, 2]"
done
for ((i = 1; i <= times; ++i)); do
  found=$("$program" --devices 2)
  [[ $found == "$expected" ]] || fail "run $i of $times: expected" "$expected" "found" "$found"
done

for devices in 1 3 7; do
  "$program" --devices "$devices" | awk -v devices="$devices" '
    NR == 1 { if ($0 != "Let'\''s use " devices (devices == 1 ? " device!" : " devices!")) exit 1; next }
    /^\tIn Model: input size \[[0-9]+, 5\] output size \[[0-9]+, 2\]$/ {
      split($0, part, /[\[,]/); rows += part[2]; ++shards; if (part[2] != part[4]) exit 1; next
    }
    /^Outside: input size \[(30|10), 5\] output_size \[(30|10), 2\]$/ {
      split($0, part, /[\[,]/); if (rows != part[2] || rows != part[4] || shards != devices) exit 1
      rows = 0; shards = 0; ++batches; next
    }
    { exit 1 }
    END { if (batches != 4) exit 1 }' || fail "with $devices devices the lines do not add up"
done

for bad in "--devices 0" "--devices -1" "--devices two" "--devices" "--device 2" "2"; do
  status=0
  # shellcheck disable=SC2086  # two words where there are two
  usage=$("$program" $bad 2>&1) || status=$?
  ((status == 2)) && [[ $usage == *usage:* ]] || fail "$bad: expected the usage and exit code 2, found code $status and" "$usage"
done
echo "the same text $times times; 1, 3 and 7 devices add up; bad arguments are refused"
