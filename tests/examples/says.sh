#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash tests/examples/says.sh EXPECTED PROGRAM [ARGUMENT...]
#
# The program ends well and prints what stands in the file EXPECTED.
set -euo pipefail
expected=$1
shift
diff -u --label "$expected" --label "$*" "$expected" <("$@" || echo "exit code $?")
