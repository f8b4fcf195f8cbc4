// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/memory/copy_into.hpp>

#include "memory/remote_memory.hpp"

using fanout::Tensor;
using fanout::backend::CopyInto;
using fanout_test::RemoteMemory;

namespace {

const auto remote = [](int index) { return RemoteMemory::memory(index); };

Tensor<int, 1> numbers(std::size_t size, int first = 0) {
  Tensor<int, 1> tensor(size);
  for (int& value : tensor) value = first++;
  return tensor;
}

/// Shows nothing of what it holds.
class Opaque {
 public:
  Opaque() : weights_{numbers(10), numbers(3, 100)}, bias_(numbers(5, 1000)) {}
  const Tensor<int, 1>& weight(std::size_t i) const { return weights_[i]; }
  Tensor<int, 1>& bias() { return bias_; }
  const Tensor<int, 1>& bias() const { return bias_; }

 private:
  std::vector<Tensor<int, 1>> weights_;
  Tensor<int, 1> bias_;
};

}  // namespace

TEST_CASE("copying any class puts its arrays in the given memory, small ones in one transfer") {
  const std::size_t alive = RemoteMemory::alive();
  {
    const Opaque original;
    const int transferred = RemoteMemory::counts().transferred;
    std::optional<Opaque> copy;
    {
      CopyInto into(remote(1));
      copy.emplace(original);
      into.finish();
    }
    CHECK(RemoteMemory::counts().transferred - transferred == 1);
    CHECK(copy->weight(1).space() == remote(1).space);
    CHECK(copy->bias().space() == remote(1).space);
    CHECK(fanout::to_host(copy->weight(0))[9] == 9);
    CHECK(fanout::to_host(copy->weight(1))[2] == 102);
    CHECK(fanout::to_host(copy->bias())[4] == 1004);
    CHECK((copy->bias().data() - copy->weight(0).data()) % 64 == 0);  // 256 bytes

    SUBCASE("an assignment writes in place, in one transfer too") {
      Opaque changed(original);
      changed.bias()[0] = -1;
      const int* const at = copy->bias().data();
      const int before = RemoteMemory::counts().transferred;
      CopyInto into(remote(1));
      *copy = changed;
      into.finish();
      CHECK(RemoteMemory::counts().transferred - before == 1);
      CHECK(std::as_const(*copy).bias().data() == at);
    }
    SUBCASE("a part that is moved out keeps the buffer alive") {
      const Tensor<int, 1> bias = std::move(copy->bias());
      copy.reset();
      CHECK(fanout::to_host(bias)[0] == 1000);
    }
    SUBCASE("copies of a copy stay in its memory, and are storage of their own") {
      const Opaque again(*copy);
      CHECK(again.bias().space() == remote(1).space);
      copy.reset();
      CHECK(fanout::to_host(again.bias())[1] == 1001);
    }
  }
  CHECK(RemoteMemory::alive() == alive);
}

TEST_CASE("large arrays are transferred alone, and many small ones take several buffers") {
  const int transferred = RemoteMemory::counts().transferred;
  std::vector<Tensor<int, 1>> many(200, numbers(50000));  // 40 MB of small ones
  many.push_back(numbers(1 << 18));
  const auto there = fanout::to(many, remote(0));
  const int buffers = RemoteMemory::counts().transferred - transferred - 1;
  CHECK(buffers >= 4);
  CHECK(buffers <= 9);
  CHECK(fanout::to_host(there[0])[49999] == 49999);
  CHECK(fanout::to_host(there[150])[777] == 777);
  CHECK(fanout::to_host(there[200])[(1 << 18) - 1] == (1 << 18) - 1);
}

TEST_CASE("a copy that is destroyed before the transfer is harmless") {
  const auto original = numbers(10);
  CopyInto into(remote(0));
  { const Tensor<int, 1> gone(original); }
  const Tensor<int, 1> kept(original);
  into.finish();
  CHECK(kept.space() == remote(0).space);
}

TEST_CASE("an inner CopyInto replaces the outer one while it lives") {
  const auto original = numbers(4);
  CopyInto outer(remote(0));
  {
    CopyInto inner(remote(1));
    const Tensor<int, 1> copy(original);
    inner.finish();
    CHECK(copy.space() == remote(1).space);
  }
  const Tensor<int, 1> copy(original);
  outer.finish();
  CHECK(copy.space() == remote(0).space);
}

TEST_CASE("empty tensors, and tensors already in the memory, are copied") {
  const Tensor<int, 2> none(0, 3);
  CHECK(fanout::to(none, remote(0)).extents() == none.extents());
  const auto there = fanout::to(numbers(4), remote(0));
  const auto back = fanout::to(there, remote(0));
  CHECK(back.data() != there.data());
  CHECK(fanout::to_host(back)[3] == 3);
}

TEST_CASE("a copy that fails half way gives back what it had") {
  const std::size_t alive = RemoteMemory::alive();
  const auto original = numbers(1 << 18);  // large: memory first, then a transfer
  for (int nth = 1; nth <= 2; ++nth) {
    CopyInto into(remote(0));
    RemoteMemory::failing() = nth;
    const auto copy = [&original] { const auto copied = original; };
    CHECK_THROWS_AS(copy(), fanout::OutOfMemory);
    CHECK(RemoteMemory::failing() == 0);
  }
  CHECK(RemoteMemory::alive() == alive);
}
