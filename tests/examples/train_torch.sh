#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash train_torch.sh PROGRAM DATA: the example `train_torch` has the same losses on 1, 2 and 3 devices, within 1e-6, and
# recognises most digits.
set -euo pipefail
program=$1 data=$2
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
for devices in 1 2 3; do
  "$program" --data "$data" --devices "$devices" --losses "$scratch/$devices" | tee "$scratch/out"
  right=$(sed -n 's/^accuracy \([0-9]*\) of 297$/\1/p' "$scratch/out")
  ((right > 270))
  awk -F, '
    FNR == 1 { ++file; next }
    file == 1 { loss[FNR] = $4; wanted = FNR; next }
    { found = FNR; off = $4 - loss[FNR]; if (off < 0) off = -off }
    !(off <= 1e-6) { print "line " FNR ": expected " loss[FNR] ", found " $4; bad = 1; exit }
    off > worst { worst = off }
    END {
      if (bad || found != wanted || found != 241) { print found - 1 " losses, not 240"; exit 1 }
      printf "  %d losses, the worst off by %.2g\n", found - 1, worst
    }' "$scratch/1" "$scratch/$devices"
done
