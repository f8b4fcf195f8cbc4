// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/gather/moved_pieces.hpp>

#include "memory/remote_memory.hpp"

using fanout::ShardResults;
using fanout::Tensor;
using fanout_test::RemoteMemory;

TEST_CASE("pieces in the wanted memory stay where they are, and the others are copied there") {
  const Tensor<int, 1> here(fanout::Extents<1>{3});
  Tensor<int, 1> there(fanout::Extents<1>{2}, RemoteMemory::memory(0));
  const int numbers[] = {4, 5};
  fanout::backend::transfer(RemoteMemory::memory(0), there.data(), fanout::host_memory, numbers, sizeof numbers);
  ShardResults<Tensor<int, 1>> pieces(3, false);
  pieces.set(0, here);
  pieces.set(1, there);
  pieces.set(2, here);
  const fanout::detail::MovedPieces<int, 1> moved(pieces, {});
  CHECK(moved.data(0) == here.data());
  CHECK(moved.data(2) == here.data());
  CHECK(moved.data(1)[0] == 4);
  CHECK(moved.data(1)[1] == 5);
}
