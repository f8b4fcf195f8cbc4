#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash requirements.sh ROOT COMPILER: passes if a compiler or a system that lacks what fanout needs is told so in one
# sentence, whichever header comes first, and if fanout does without what it does not need.
set -euo pipefail
export LC_ALL=C
root=$1 compiler=$2
cd -- "$root"
tried=0 wrong=0

# refuses SENTENCE FLAG... -- HEADER...: each of the headers says the sentence, and stops.
refuses() {
  local sentence=$1 flags=() header output errors
  shift
  while [[ $1 != -- ]]; do flags+=("$1") && shift; done
  shift
  for header; do
    tried=$((tried + 1))
    output=$("$compiler" -std=c++20 "${flags[@]}" -w -fsyntax-only -fdiagnostics-color=never -x c++ "$header" 2>&1) ||
      true
    errors=$(grep -E ' (fatal )?error: ' <<< "$output" || true)
    if [[ $(wc -l <<< "$errors") -ne 2 || $errors != *"error: "*"$sentence"*requirements_not_met* ]]; then
      printf '%s, compiled with %s, should print only "%s" but printed:\n%s\n' \
        "$header" "${flags[*]}" "$sentence" "${output:0:2000}" >&2
      wrong=$((wrong + 1))
    fi
  done
}

# takes FLAG...: a program compiles without a warning.
takes() {
  tried=$((tried + 1))
  "$compiler" -std=c++20 "$@" -Wall -Wextra -Werror -Iinclude -fsyntax-only tests/consumer/main.cpp || {
    echo "a program does not compile with $*" >&2
    wrong=$((wrong + 1))
  }
}

# Headers of others come before those of cuda/ and mpi/, which only the umbrellas stand for here.
mapfile -t all < <(find include/fanout -name '*.hpp' ! -path '*/cuda/*' ! -path '*/mpi/*' ! -path '*/adapt/*' ! -name version.hpp)
case $("$compiler" --version) in *clang*) all=() ;; esac  # one compiler's turn at them will do
ordinary=(include/fanout/fanout.hpp include/fanout/fwd.hpp include/fanout/cuda.hpp include/fanout/array/tensor.hpp)
others=(include/fanout/cuda/launch.cuh include/fanout/cuda/nccl.hpp include/fanout/mpi.hpp include/fanout/adapt/thrust.cuh
  include/fanout/adapt/{dlpack,eigen,mdspan,thrust,torch}.hpp)

refuses "fanout needs C++20: compile with -std=c++20" -std=c++17 -Iinclude -- \
  "${all[@]}" "${ordinary[@]}" "${others[@]}"
refuses "fanout needs C++20: compile with -std=c++20" -std=c++11 -Iinclude -- "${ordinary[@]}"
refuses "fanout needs exceptions" -fno-exceptions -Iinclude -- "${ordinary[@]}" "${others[@]}"
refuses "fanout needs exceptions" -fno-exceptions -isystem include -- "${ordinary[@]}"  # as an installed package is
refuses "fanout needs Linux or another POSIX system" -D_WIN32 -Iinclude -- "${ordinary[@]}" "${others[@]}"
refuses "fanout needs a 64-bit system" -U__SIZEOF_POINTER__ -D__SIZEOF_POINTER__=4 -Iinclude -- \
  "${ordinary[@]}" "${others[@]}"
refuses "fanout needs g++, clang" -U__GNUC__ -Iinclude -- "${ordinary[@]}" "${others[@]}"
takes
takes -fno-rtti
takes -U__linux__  # another POSIX system
((tried > 40 && wrong == 0)) || exit 1
echo "$tried compilations behaved as expected"
