#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash digits.sh PROGRAM DATA [COUNT...]
#
# Checks the example `digits` against reference runs on one device: digits_mlp.csv is PyTorch's, digits_momentum.csv is
# of a few lines of NumPy that know nothing of fanout. On COUNT... devices, for slow builds and devices: there fewer runs
# train replicas in step, and fewer are resumed. With DIGITS_ON_GPUS, no stages are trained: their models compute on the host.
set -euo pipefail
program=$1 data=$2
shift 2
counts=("$@") in_step=() resumes=2
((${#counts[@]})) || counts=(1 2 3 4 7) in_step=(1 2 3 4 7) resumes=6
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

faults=0
fault() {
  echo "FAULT: $*"
  faults=$((faults + 1))
}

# says WANTED FILE: the file has a line that contains this.
says() { grep -qF -- "$1" "$2" || fault "expected \"$1\", found: $(cat "$2")"; }

# trains REFERENCE ACCURACY SUMS FLAG...: every loss within 1e-10, and what is printed at the end.
trains() {
  local reference=$1 accuracy=$2 sums=$3
  shift 3
  echo "digits $*"
  if ! "$program" --data "$data" --losses "$scratch/losses" "$@" > "$scratch/out"; then
    fault "digits $* failed"
    return
  fi
  says "accuracy $accuracy of 297" "$scratch/out"
  says "$sums" "$scratch/out"
  awk -F, '
    FNR == 1 { ++file; header[file] = $0; next }
    file == 1 { where[FNR] = $1 "," $2 "," $3; loss[FNR] = $4; wanted = FNR; next }
    { found = FNR; off = $4 - loss[FNR]; if (off < 0) off = -off }
    where[FNR] != $1 "," $2 "," $3 || $4 !~ /^[0-9.e-]+$/ || !(off <= 1e-10) {
      print "line " FNR ": expected " where[FNR] "," loss[FNR] ", found " $0; bad = 1; exit
    }
    off > worst { worst = off }
    END {
      if (bad) exit 1
      if (header[1] != header[2] || found < 2 || found != wanted) { print found " lines, not " wanted; exit 1 }
      printf "  %d losses, the worst off by %.2g\n", found - 1, worst
    }' "$here/$reference" "$scratch/losses" || fault "digits $*: other losses than $reference"
}

# refuses WANTED FLAG...: exit code 2, a message with this in it, and nothing else happens.
refuses() {
  local wanted=$1 code=0
  shift
  rm -f "$scratch/losses"
  "$program" --losses "$scratch/losses" "$@" > "$scratch/out" 2> "$scratch/err" || code=$?
  ((code == 2)) || fault "digits $*: exit code $code, not 2"
  [[ ! -s $scratch/out && ! -e $scratch/losses ]] || fault "digits $*: printed something before it refused"
  says "$wanted" "$scratch/err"
}

echo "on ${counts[*]} devices"
for count in "${counts[@]}"; do
  trains digits_mlp.csv 267 "sum of W1 -0.195496050272, norm of W2 8.489158522206" --devices "$count"
done
modes=(update replicas stages)
if [[ -n ${DIGITS_ON_GPUS-} ]]; then
  echo "SKIPPED: --mode stages, whose models compute on the host"
  modes=(update replicas)
else
  trains digits_mlp.csv 267 "sum of W1 -0.195496050272, norm of W2 8.489158522206" --devices "${counts[0]}" --mode stages
fi
# The last batch of each epoch has 4 rows, for 5 devices.
for mode in "${modes[@]}"; do
  trains digits_momentum.csv 114 "sum of W1 -1.467976868249, norm of W2 3.608686583789" --mode "$mode" \
    --devices 5 --hidden 7 --batch 187 --epochs 3 --rate 0.1 --momentum 0.9 --salt 3
done
for count in "${in_step[@]}"; do
  trains digits_mlp.csv 267 "sum of W1 -0.195496050272, norm of W2 8.489158522206" \
    --devices "$count" --mode replicas --workers 0
done

# shows_losses FILE: of each epoch of which the run has seen rows, it prints the loss of these rows.
shows_losses() {
  awk -F, 'NR > 1 { if (!($2 in rows)) epochs[++count] = $2; sum[$2] += $3 * $4; rows[$2] += $3 }
    END { for (i = 1; i <= count; ++i) printf "epoch %2d: loss %.6f\n", epochs[i], sum[epochs[i]] / rows[epochs[i]] }' \
    "$1" | diff - <(grep '^epoch' "$scratch/out") > "$scratch/diff" || fault "printed losses: $(head -n 4 "$scratch/diff")"
}

# resumes STEPS MODE WORKERS WORKERS: a run that is saved after so many steps, and goes on with other workers, has bit by bit
# the losses of one that was not interrupted.
resumes() {
  local flags=(--data "$data" --devices 2 --mode "$2" --hidden 8 --epochs 3 --shuffle 3 --rate 0.3 --momentum 0.5)
  "$program" "${flags[@]}" --losses "$scratch/whole" > "$scratch/out" || fault "digits failed"
  "$program" "${flags[@]}" --workers "$3" --steps "$1" --save "$scratch/run" --losses "$scratch/first" > "$scratch/out" ||
    fault "a run that is saved failed"
  shows_losses "$scratch/first"
  "$program" "${flags[@]}" --workers "$4" --resume "$scratch/run" --losses "$scratch/second" > "$scratch/out" ||
    fault "a run that goes on failed"
  shows_losses "$scratch/second"
  diff <(tail -n +2 "$scratch/whole" | cut -d, -f2-) <(tail -qn +2 "$scratch/first" "$scratch/second" | cut -d, -f2-) \
    > "$scratch/diff" || fault "resumed after $1 steps: $(head -n 4 "$scratch/diff")"
}
echo "runs that are saved and resumed: ${FANOUT_RESUMES:=$resumes}"
RANDOM=1
for ((i = 0; i < FANOUT_RESUMES; ++i)); do
  if ((i % 2)); then mode=update; else mode=replicas; fi
  resumes $((RANDOM % 35 + 1)) $mode $((RANDOM % 4)) $((RANDOM % 4))
done
resumes 12 update 0 1  # at the end of an epoch
refuses "an invalid safetensors file at $data" --data "$data" --resume "$data"
refuses "--mode: expected update or replicas or stages, found \"both\"" --data "$data" --mode both

echo "bad arguments"
for flags in "--devices 0" "--devices 4097" "--devices two" "--devices -1" "--devices 1.5" "--hidden 0" "--batch 0" \
  "--epochs 0" "--epochs 99999999999999999999" "--rate -0.5" "--rate nan" "--rate 0.5x" "--momentum -1" "--salt 1e10"; do
  # shellcheck disable=SC2086
  refuses "${flags% *}: expected a" --data "$data" $flags
  says "usage: " "$scratch/err"
done
refuses "--rate: expected a" --rate ""
refuses "--rate lacks its value" --data "$data" --rate
refuses "--rate lacks its value" --rate --data "$data"
refuses "unknown argument --rates" --rates 1
refuses "unknown argument rate" rate 1
refuses "cannot write to the file $scratch/no/losses" --data "$data" --losses "$scratch/no/losses"
"$program" --help > "$scratch/out" || fault "--help failed"
says "usage: " "$scratch/out"

echo "bad data"
refuses "cannot open the file $scratch/none.csv" --data "$scratch/none.csv"
refuses "cannot read the file $scratch" --data "$scratch"
# spoilt WANTED AWK_PROGRAM: the data, changed by this.
spoilt() {
  awk -F, -v OFS=, "$2" "$data" > "$scratch/spoilt.csv"
  refuses "$1" --data "$scratch/spoilt.csv"
  says "$scratch/spoilt.csv" "$scratch/err"
}
spoilt "line 7: expected 65, found 64" 'NR == 7 { sub(/,[0-9]+$/, "") } 1'
spoilt "line 7: expected 65, found 0" 'NR == 7 { $0 = "" } 1'
spoilt "line 7: expected 65, found 66" 'NR == 7 { $0 = $0 ",1" } 1'
spoilt 'line 1797, column 65: expected 0 to 9, found ""' 'NR == 1797 { sub(/[0-9]+$/, "") } 1'
spoilt 'line 1, column 3: expected 0 to 16, found "x5"' 'NR == 1 { $3 = "x5" } 1'
spoilt 'line 7, column 3: expected 0 to 16, found "5 "' 'NR == 7 { $3 = "5 " } 1'
spoilt 'line 7, column 3: expected 0 to 16, found "1.5"' 'NR == 7 { $3 = "1.5" } 1'
spoilt 'line 7, column 1: expected 0 to 16, found "17"' 'NR == 7 { $1 = 17 } 1'
spoilt 'line 7, column 1: expected 0 to 16, found "-1"' 'NR == 7 { $1 = -1 } 1'
spoilt 'line 7, column 64: expected 0 to 16, found "99999999999"' 'NR == 7 { $64 = "99999999999" } 1'
spoilt 'line 7, column 65: expected 0 to 9, found "10"' 'NR == 7 { $65 = 10 } 1'
spoilt "line 1: expected at least one row" '0'
spoilt "expected more than the 297" 'NR <= 297'

echo "lines that end in CR LF, the last one in nothing"
awk 'NR > 1 { printf "\r\n" } { printf "%s", $0 }' "$data" > "$scratch/other.csv"
"$program" --data "$scratch/other.csv" --epochs 1 > "$scratch/out" || fault "failed"
says "accuracy" "$scratch/out"

((faults == 0)) || { echo "$faults faults"; exit 1; }
echo "all checks passed"
