// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
//
// Outputs on devices that can copy to each other directly: their rows are sent to the results' memory at once.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/worker/registry.hpp>

#include "support/asleep.hpp"

namespace sent_outputs_test {

using fanout::MemorySpace;
using fanout::Output;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::backend::host_memory_operations;
using fanout::backend::MemoryOperations;

std::atomic<int> sent = 0;
bool can_send = true;
bool to_host = false;
bool has_memory = true;                  // on the first device
std::array<std::atomic<int>, 2> blocks;  // on each device
int kept = 0;                            // blocks of the second device when its work is done

void* allocate(const MemorySpace& space, std::size_t bytes) {
  const int index = space.owner.index;
  if (index == 0 && !has_memory) throw fanout::OutOfMemory("for this test");
  ++blocks[static_cast<std::size_t>(index)];
  return host_memory_operations.allocate(fanout::host_memory, bytes);
}
void release(const MemorySpace& space, void* data, std::size_t bytes, void* owner) noexcept {
  --blocks[static_cast<std::size_t>(space.owner.index)];
  host_memory_operations.release(fanout::host_memory, data, bytes, owner);
}
void transfer(const MemorySpace&, void* to, const MemorySpace&, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
bool is_sendable(const MemorySpace& to, const MemorySpace&, const void*, std::size_t) {
  return can_send && (to_host || !(to == fanout::host_memory));
}
void send(const MemorySpace&, void* to, const MemorySpace&, const void* from, std::size_t bytes) {
  ++sent;
  std::memcpy(to, from, bytes);
}

struct Tables {
  static const MemoryOperations sends, mute;
};
constexpr MemoryOperations table(const MemoryOperations& fresh, bool sends) {
  return {.allocate = &allocate,
          .release = &release,
          .copy = host_memory_operations.copy,
          .clear = host_memory_operations.clear,
          .fresh = &fresh,
          .transfer = &transfer,
          .can_send = sends ? &is_sendable : nullptr,
          .send = sends ? &send : nullptr};
}
const MemoryOperations Tables::sends = table(sends, true);
const MemoryOperations Tables::mute = table(mute, false);

/// A device with a memory of its own, which the host can use as well.
template <bool Sends>
class Sender {
 public:
  static constexpr bool has_own_memory = true;
  static constexpr fanout::DeviceKind kind = Sends ? fanout::DeviceKind("sender") : fanout::DeviceKind("mute");

  explicit Sender(int index)
      : worker_(&fanout::backend::registry().worker({.kind = kind, .index = index}, fanout::backend::registry().cores(),
                                                    false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const {
    const MemoryOperations& operations = Sends ? Tables::sends : Tables::mute;
    fanout::backend::declare_memory(kind, operations);
    return {{id()}, &operations};
  }
  fanout::backend::Worker& worker() const { return *worker_; }
  struct Entered {
    ~Entered() {}
  };
  Entered enter() const { return {}; }
  void synchronize() const {}
  fanout::backend::Completion completion() const {
    return {[](void* second) {
              if (second != nullptr) kept = blocks[1];
            },
            id().index == 1 ? worker_ : nullptr};
  }
  static std::vector<Sender> visible() { return {Sender(0), Sender(1)}; }
  friend bool operator==(const Sender&, const Sender&) = default;

 private:
  fanout::backend::Worker* worker_;
};

const auto doubles = [](fanout::Context auto& ctx, const View<const float, 1>& x) {
  auto y = fanout::output<float>(ctx);
  for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = 2 * x.data()[i];
  return y;
};

/// Calls a model with this forward on two devices and four rows.
template <bool Sends = true, class F>
auto call(const F& forward, fanout::Options options = {}) {
  sent = 0;
  kept = 0;
  has_memory = true;
  const ParallelModel model{forward, fanout::DeviceSet(Sender<Sends>::visible()), std::move(options)};
  auto result = model(fanout::tensor<float>({0, 1, 2, 3}));
  return result;
}

template <class Array>
void check_doubled(const Array& y) {
  REQUIRE(y.extent(0) == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(y.data()[i] == 2 * static_cast<float>(i));
}

struct Both {
  Tensor<float, 1> y;
  std::vector<double> loss;
};

TEST_CASE("the rows of outputs are sent to the results' memory, and the shard's memory is released") {
  const auto [y, loss, inner] = call([](fanout::Context auto& ctx, const View<const float, 1>& x) {
    return std::tuple(doubles(ctx, x), 1.5, std::tuple(doubles(ctx, x)));
  });
  CHECK(sent == 2);
  CHECK(kept == 0);
  CHECK(y.space() == MemorySpace{{.kind = "sender", .index = 0}});
  check_doubled(y);
  check_doubled(std::get<0>(inner));
  CHECK(loss[1] == 1.5);

  const Both both = call([](fanout::Context auto& ctx, const View<const float, 1>& x) {
    return Both{doubles(ctx, x), {1.5}};
  });
  check_doubled(both.y);
}

TEST_CASE("if results are on the host, all devices send the rows of outputs there, also those of an array of outputs") {
  const fanout::Options to_the_host{.output = fanout::DeviceId{.kind = "host", .index = 0}};
  to_host = true;
  check_doubled(call(doubles, to_the_host));
  CHECK(sent == 2);
  const auto both = call(
      [](fanout::Context auto& ctx, const View<const float, 1>& x) {
        return std::array{doubles(ctx, x), doubles(ctx, x)};
      },
      to_the_host);
  CHECK(sent == 4);
  check_doubled(both[0]);
  check_doubled(both[1]);
  to_host = false;
}

TEST_CASE("an output that cannot be sent stays on its device until it is gathered") {
  SUBCASE("since the devices cannot copy") {
    can_send = false;
    check_doubled(call(doubles));
    can_send = true;
    CHECK(kept > 0);
  }
  SUBCASE("since their memory has no such operation") {
    check_doubled(call<false>(doubles));
    CHECK(kept > 0);
  }
  SUBCASE("since it is not sent to the host") {
    check_doubled(call(doubles, {.output = fanout::DeviceId{.kind = "host", .index = 0}}));
    CHECK(kept > 0);
  }
  SUBCASE("since it is there already") {
    const fanout::DeviceId second{.kind = "sender", .index = 1};
    const auto all_on_second = [](std::size_t rows, std::size_t) {
      return fanout::Plan{{.rows = {0, rows}, .device = 1}};
    };
    check_doubled(call(doubles, {.output = second, .split = all_on_second}));
    CHECK(kept > 0);
  }
  SUBCASE("since another shard's output has rows of another size") {
    std::atomic<bool> claimed{false};
    const auto [y, wide] = call([&claimed](fanout::Context auto& ctx, const View<const float, 1>& x) {
      if (ctx.rank() != 0) fanout_test::until(claimed);
      std::optional<Output<double, 1>> first;
      if (ctx.rank() != 0) first = fanout::output<double>(ctx);
      const auto narrow = doubles(ctx, x);
      if (!first) first = fanout::output<double>(ctx);
      for (std::size_t i = 0; i < x.size(); ++i) first->data()[i] = 2 * x.data()[i];
      claimed = true;
      return std::tuple(narrow, *first);
    });
    check_doubled(y);
    check_doubled(wide);
    CHECK(kept > 0);
  }
  CHECK(sent == 0);
}

TEST_CASE("without memory for the results the call says so, not the shard that cannot send") {
  const auto all_on_second = [](std::size_t rows, std::size_t) {
    return fanout::Plan{{.rows = {0, rows}, .device = 1}};
  };
  CHECK_THROWS_AS(call(
                      [](fanout::Context auto& ctx, const View<const float, 1>& x) {
                        const auto y = doubles(ctx, x);
                        has_memory = false;
                        return y;
                      },
                      {.split = all_on_second}),
                  fanout::OutOfMemory);
  has_memory = true;
}

TEST_CASE("the shard's memory is kept while its result shows it") {
  SUBCASE("since an output is under a rule") {
    const auto [y, sum] = call([](fanout::Context auto& ctx, const View<const float, 1>& x) {
      return std::tuple(doubles(ctx, x), fanout::psum(doubles(ctx, x)));
    });
    check_doubled(y);
    CHECK(sum.data()[1] == 2 * 1 + 2 * 3);
  }
  SUBCASE("since there is a view in it") {
    const auto [y, same] =
        call([](fanout::Context auto& ctx, const View<const float, 1>& x) { return std::tuple(doubles(ctx, x), x); });
    check_doubled(y);
    CHECK(same.data()[3] == 3);
  }
  CHECK(sent == 1);
  CHECK(kept > 0);
}

}  // namespace sent_outputs_test
