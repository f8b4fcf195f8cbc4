#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash tests/formatted.sh [--fix]: fails if clang-format 14 would change a C++ file, or a line of one has more than 120
# columns. Texts of expected errors may be longer: they are one line. --fix formats the files.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

act=(--dry-run -Werror)
[[ ${1:-} != --fix ]] || act=(-i)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.hpp' '*.ipp' '*.h' '*.cpp' '*.cu' '*.cuh')
status=0
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 50 clang-format-14 "${act[@]}" || status=1
awk 'length($0) > 120 && !/\/\/ expect:/ { print FILENAME ":" FNR ": " length($0) " columns"; long = 1 } END { exit long }' \
  "${files[@]}" || status=1
exit "$status"
