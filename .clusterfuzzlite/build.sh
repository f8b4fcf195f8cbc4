#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds the fuzz targets as OSS-Fuzz and ClusterFuzzLite ask for, from the root of the repository: by $CXX with
# $CXXFLAGS and $LIB_FUZZING_ENGINE, to $OUT. tests/state/fuzz/run builds them by this, too.
fuzz=tests/state/fuzz
# CXXFLAGS are several words.
# shellcheck disable=SC2086
$CXX $CXXFLAGS -std=c++20 -I include "$fuzz/header.cpp" -o "$OUT/header" $LIB_FUZZING_ENGINE
cp "$fuzz/header.dict" "$OUT/header.dict"
seeds=$(mktemp -d)
"$OUT/header" --seeds "$seeds"
zip -q -j "$OUT/header_seed_corpus.zip" "$seeds"/*
rm -r "$seeds"
