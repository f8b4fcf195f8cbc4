# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the scripts of tests/consumer/*/run share; each sources it. It leaves them in an empty scratch folder,
# outside of the repository, which goes when they end.
#
# Each of them brings fanout to main.cpp in another way, as a user would.

set -euo pipefail
exec < /dev/null
consumers=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
repository=${consumers%/*/*}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

number=$(sed -n 's/^#define FANOUT_VERSION //p' "$repository/include/fanout/base/version.hpp")
version=$((number / 10000)).$((number / 100 % 100)).$((number % 100))
IFS=. read -r major minor patch <<< "$version"

# install_tools PACKAGE...: what a way needs, where it is not there yet.
install_tools() { bash "$repository/cmake/install-tools" "$@"; }

# get_fanout FOLDER: fanout's files as they stand, without what is git's and what was built. A copy, so that a
# way can neither lean on the repository nor write to it, whoever owns it and whatever git thinks of that.
get_fanout() {
  mkdir -p "$1"
  tar -C "$repository" --exclude=./.git --exclude=./build -c . | tar -C "$1" --no-same-owner -x
}

# get_other_fanout FOLDER NUMBER: the same under another version, by its number.
get_other_fanout() {
  get_fanout "$1"
  sed -i "s/\(#define FANOUT_VERSION\) .*/\1 $2/" "$1/include/fanout/base/version.hpp"
}

# get_consumer WAY: the programs, and the CMakeLists.txt of that way, in the folder `consumer`.
get_consumer() {
  mkdir -p consumer
  cp "$consumers"/*.c* "$consumers/$1/CMakeLists.txt" consumer
}

# build_consumer ARGUMENT...: configures with these arguments, builds, runs; what needs CUDA too, where the toolkit is.
build_consumer() {
  cmake -G Ninja -S consumer -B consumer/build "$@"
  cmake --build consumer/build
  consumer/build/consumer
  for program in compiled gpus compiled_gpus collectives square; do
    [[ ! -e consumer/build/$program ]] || "consumer/build/$program"
  done
}

# refuses TEXT COMMAND...: passes if the command fails and says so. White space counts once, since CMake breaks lines.
refuses() {
  local text=$1 said
  shift
  if said=$("$@" 2>&1); then
    printf 'This should have been refused: %s\n' "$*" >&2
    return 1
  fi
  said=$(tr -s '[:space:]' ' ' <<< "$said")
  [[ $said == *"$text"* ]] || { printf 'This should say "%s":\n%s\n' "$text" "$said" >&2; return 1; }
}

# is FOUND EXPECTED WHAT
is() {
  [[ $1 == "$2" ]] || { printf '%s: "%s", not "%s"\n' "$3" "$1" "$2" >&2; return 1; }
}
