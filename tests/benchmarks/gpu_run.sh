#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash gpu_run.sh ROOT [STAND_IN]
#
# benchmarks/cuda/run. Where no kernel can run, it fails, says why in one sentence, builds nothing and writes no result:
# here without a GPU, and on the stand-in for the CUDA runtime in the folder STAND_IN. Then all of its steps, with
# programs of a line each in place of the compilers, the tools and what they build.
set -euo pipefail
root=$1
command -v nvcc > /dev/null || [[ -x /usr/local/cuda/bin/nvcc ]] || { echo 'skipped: there is no nvcc'; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

faults=0
fault() {
  echo "FAULT: $*"
  faults=$((faults + 1))
}

# refuses SENTENCE VARIABLE=VALUE...
refuses() {
  local wanted="benchmarks/cuda/run: $1" code=0 found before
  shift
  before=$(ls "$root/benchmarks/results")
  found=$(env "$@" bash "$root/benchmarks/cuda/run" "$scratch/build" 2>&1) || code=$?
  [[ $code == 1 && $found == "$wanted" ]] \
    || fault "$*: expected exit status 1 and \"$wanted\", found $code and \"$found\""
  [[ ! -e $scratch/build/CMakeCache.txt && $(ls "$root/benchmarks/results") == "$before" ]] \
    || fault "$*: it built something, or wrote a result"
}

no_driver='There is no NVIDIA driver that CUDA can use on this machine.'
if [[ -n ${2-} ]]; then
  path=LD_LIBRARY_PATH=$2
  refuses "$no_driver" "$path" FANOUT_STAND_IN_DEVICES=none
  refuses 'There is no GPU that CUDA can use on this machine: no CUDA-capable device is detected.' \
    "$path" FANOUT_STAND_IN_DEVICES=0
  # A GPU on which nothing runs is no GPU.
  refuses 'GPU 0 runs no kernel: no kernel image is available for execution on the device.' \
    "$path" FANOUT_STAND_IN_DEVICES=1 'FANOUT_STAND_IN_ALLOW=device memory'
fi
command -v nvidia-smi > /dev/null || refuses "$no_driver" FANOUT_STAND_IN_DEVICES=
if command -v g++ > /dev/null; then
  echo 'extern "C" int cudaDriverGetVersion(int* version) { *version = 12040; return 0; }' > "$scratch/old.cpp"
  g++ -shared -fPIC "$scratch/old.cpp" -o "$scratch/old.so"
  runtime=$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\).*/\1/p' \
    "$(dirname -- "$(readlink -f "$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)")")"/../include/cuda_runtime_api.h)
  # Loaded into the check alone: a compiler's programs do not like it.
  mkdir "$scratch/loading"
  cat > "$scratch/loading/timeout" << EOF
#!/bin/bash
while [[ \$1 == -k || \$1 == [0-9]* ]]; do shift; done
LD_PRELOAD=$scratch/old.so exec "\$@"
EOF
  chmod +x "$scratch/loading/timeout"
  version=$((runtime / 1000)).$((runtime % 1000 / 10))
  refuses "The driver is older than the runtime: it supports CUDA 12.4, and the runtime is CUDA $version." \
    "PATH=$scratch/loading:$PATH"
fi

# ---- all steps, without anything that they are about --------------------------------------------------
tree=$scratch/tree tools=$scratch/tools
mkdir -p "$tree/benchmarks/results" "$tree/tests/examples" "$tools"
cp -r -- "$root/benchmarks/cuda" "$tree/benchmarks"
echo 'echo all as it should be' > "$tree/tests/examples/digits.sh"
# tool NAME: what it does is read from here.
tool() {
  { echo '#!/bin/bash'; cat; } > "$tools/$1"
  chmod +x "$tools/$1"
}
tool nvcc << 'EOF'
while (($# > 0)); do
  [[ $1 != -o ]] || cp -- "$(type -P true)" "$2"
  shift
done
EOF
tool cmake << 'EOF'
if [[ $1 == --build ]]; then
  build=$2
  while [[ $1 != --target ]]; do shift; done
  shift
  for target; do
    [[ $target != -- ]] || break
    [[ $target != "$FAKE_MISSING" ]] || continue
    text="$target ok right=all"
    [[ $target != test_* ]] || text='[doctest] test cases: 7 | 7 passed | 0 failed | 0 skipped'
    [[ $target != benchmark_torch_steps ]] || text='skipped: this libtorch cannot use a GPU'
    code=0
    [[ $target != benchmark_torch_steps ]] || code=77
    [[ $target != "$FAKE_FAILING" ]] || code=1
    printf '#!/bin/bash\necho "%s"\nexit %s\n' "$text" $code > "$build/$target"
    chmod +x "$build/$target"
  done
else
  while [[ $1 != -B ]]; do shift; done
  printf '%s\n' NCCL_LIBRARY:FILEPATH=/lib/libnccl.so CUDA_cublas_LIBRARY:FILEPATH=/lib/libcublas.so \
    FANOUT_BENCHMARK_TORCH_INCLUDE:PATH=/include > "$2/CMakeCache.txt"
fi
EOF
tool nvidia-smi <<< 'echo "A GPU 1"'
tool compute-sanitizer << 'EOF'
[[ $1 != --help ]] || { echo --track-stream-ordered-races; exit; }
while [[ $1 == --* || $1 != */* ]]; do shift; done
exec "$@"
EOF

# runs CODE SUMMARY VARIABLE=VALUE...
runs() {
  local wanted=$1 summary=$2 code=0 found
  shift 2
  rm -rf -- "$tree/build"
  found=$(env "PATH=$tools:$PATH" FAKE_MISSING= FAKE_FAILING= "$@" \
    bash "$tree/benchmarks/cuda/run" "$tree/build" 2>&1) || code=$?
  [[ $code == "$wanted" && $found == *"$summary"* ]] \
    || fault "$*: expected $wanted and \"$summary\", found $code and $found"
  grep -qF -- "$summary" "$tree"/benchmarks/results/cuda_A_GPU_1_*.txt || fault "$*: the result is not written"
}
if [[ -e /usr/include/doctest/doctest.h || -e /usr/local/include/doctest/doctest.h ]]; then
  runs 0 ' steps: ' FAKE_NOTHING=
  runs 0 ' passed, 0 failed or timed out, 1 skipped' FAKE_NOTHING=
  runs 1 'failed           0  lanes ' FAKE_MISSING=gpu_lanes
  runs 1 'exit status 1' FAKE_FAILING=test_nccl
fi
((faults == 0)) || exit 1
echo 'all as it should be'
