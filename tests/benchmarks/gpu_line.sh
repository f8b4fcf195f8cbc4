#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash gpu_line.sh PROGRAM NAME LINES [FLAG...]
#
# A program of benchmarks/cuda/programs prints one line, which has the keys and ranges of its line in the file LINES.
# How fast it was is not looked at, so the verdict may be "slow".
set -euo pipefail
program=$1 name=$2 lines=$3
shift 3

# shape: a line without the values of its ratios.
shape() { sed -E 's/=[-+.a-z0-9]+(\(| |$)/=\1/g; s/ slow right=/ ok right=/'; }

code=0
found=$("$program" "$name" --any-speed 1 "$@") || code=$?
echo "$found"
if [[ $code != 0 ]]; then
  echo "FAULT: exit status $code"
  exit 1
fi
wanted=$(grep "^$name " "$lines" | shape)
if [[ $(shape <<< "$found") != "$wanted" || $found != *right=all* ]]; then
  echo "FAULT: expected the shape"
  echo "$wanted"
  exit 1
fi
