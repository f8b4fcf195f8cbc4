// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// Has all that a context has but what is taken away.
template <int Lacks>
struct Archetype {
  fanout::HostDevice device() requires(Lacks != 1);
  std::size_t rank() requires(Lacks != 2);
  std::size_t size() requires(Lacks != 3);
  fanout::RowRange rows() requires(Lacks != 4);
  fanout::RandomStream random(std::size_t) requires(Lacks != 5);
  struct Claim {
    fanout::detail::OutputBuffer& buffer;
    fanout::RowRange rows;
    std::byte* first;
  };
  Claim claim_output(std::size_t) requires(Lacks != 6);
  void* claim_scratch(std::size_t) requires(Lacks != 7);
  bool stop_requested() requires(Lacks != 8);
};

struct Seen {
  int index;
  std::size_t rank, size, begin, end;
};

}  // namespace

TEST_CASE("a type without one of the eight members is no context") {
  static_assert(Context<Archetype<0>>);
  static_assert(!Context<Archetype<1>>);
  static_assert(!Context<Archetype<2>>);
  static_assert(!Context<Archetype<3>>);
  static_assert(!Context<Archetype<4>>);
  static_assert(!Context<Archetype<5>>);
  static_assert(!Context<Archetype<6>>);
  static_assert(!Context<Archetype<7>>);
  static_assert(!Context<Archetype<8>>);
  static_assert(!Context<int>);
  CHECK(Context<fanout::ShardContext<fanout::HostDevice>>);
}

TEST_CASE("a context tells the device, the rank and the rows of its shard") {
  ParallelModel model{
      [](Context auto& ctx, View<const int, 1>) {
        return std::vector{Seen{ctx.device().id().index, ctx.rank(), ctx.size(), ctx.rows().first, ctx.rows().last}};
      },
      host_devices(3)};
  const auto seen = model(Tensor<int, 1>(8));
  REQUIRE(seen.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(seen[i].index == static_cast<int>(i));
    CHECK(seen[i].rank == i);
    CHECK(seen[i].size == 3);
    CHECK(fanout::RowRange{seen[i].begin, seen[i].end} == model.plan(8)[i].rows);
  }
}

TEST_CASE("an output has this shard's rows, and scratch the extents that were asked for") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        const auto output = fanout::output<double>(ctx, 3, 2U);
                        static_assert(std::is_same_v<decltype(output), const fanout::Output<double, 3>>);
                        const auto flat = fanout::output<char>(ctx);
                        static_assert(std::is_same_v<decltype(flat), const fanout::Output<char, 1>>);
                        const auto scratch = fanout::empty<int>(ctx, 4, 5);
                        static_assert(std::is_same_v<decltype(scratch), const View<int, 2>>);
                        const bool right = output.extents() == fanout::Extents<3>{x.extent(0), 3, 2} &&
                                           flat.extents() == fanout::Extents<1>{x.extent(0)} &&
                                           scratch.extents() == fanout::Extents<2>{4, 5} &&
                                           output.first_row() == ctx.rows().first &&
                                           reinterpret_cast<std::uintptr_t>(scratch.data()) % 64 == 0;
                        return right;
                      },
                      host_devices(2)};
  const auto right = model(Tensor<int, 1>(5));
  CHECK(right[0]);
  CHECK(right[1]);
}

TEST_CASE("without rows an output has none") {
  ParallelModel model{[](Context auto& ctx) { return fanout::output<int>(ctx, 3); }, host_devices(2)};
  CHECK(model().extents() == fanout::Extents<2>{0, 3});
}

TEST_CASE("extents that cannot be are a failure of the replica") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>, int columns) {
                        (void)fanout::empty<int>(ctx, columns);
                        return fanout::output<int>(ctx, columns);
                      },
                      host_devices(2)};
  try {
    (void)model(Tensor<int, 1>(4), -1);
    CHECK_MESSAGE(false, "nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    CHECK(error.get_if<fanout::ShapeMismatch>() != nullptr);
  }
  CHECK(model(Tensor<int, 1>(4), 2).extents() == fanout::Extents<2>{4, 2});
}

TEST_CASE("extents that repeat the shard's rows are explained in the error") {
  const ParallelModel model{
      [](Context auto& ctx, View<const float, 1> x) { return fanout::output<float>(ctx, x.extent(0)); },
      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)model(Tensor<float, 1>(5)); }), "[3, 3]", "[2, 2]",
             "the rows of each shard twice", "output<T>(ctx) has one element for each row"));
  const ParallelModel others{
      [](Context auto& ctx, View<const float, 1>) { return fanout::output<float>(ctx, ctx.rank() + 3); },
      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)others(Tensor<float, 1>(5)); }),
             "arrays are concatenated by rows"));
}

#if FANOUT_CHECKS
TEST_CASE("uninitialised elements are filled with NaN or a pattern if checks are on") {
  const ParallelModel sums{[](Context auto& ctx, View<const float, 1> x) {
                             auto y = fanout::output<float>(ctx);
                             for (std::size_t i = 0; i < x.size(); ++i) y[i] += x[i];
                             return y;
                           },
                           host_devices(2)};
  for (int call = 0; call < 2; ++call) {
    const auto y = sums(Tensor<float, 1>(5));
    for (const float value : y) CHECK(std::isnan(value));
  }
  const ParallelModel bytes{[](Context auto& ctx, View<const float, 1>) {
                              const auto numbers = fanout::empty<double>(ctx, 2, 3);
                              const auto complex = fanout::empty<std::complex<float>>(ctx, 3);
                              CHECK(std::isnan(numbers(1, 2)));
                              CHECK(std::isnan(complex[2].imag()));
                              static_cast<void>(fanout::empty<double>(ctx, 0));
                              const auto whole = fanout::empty<std::uint32_t>(ctx, 3);
                              CHECK(whole[2] == 0xCDCDCDCD);
                              return fanout::output<std::uint8_t>(ctx, 2);
                            },
                            host_devices(2)};
  const auto unset = bytes(Tensor<float, 1>(3));
  CHECK(unset(2, 1) == 0xCD);
  CHECK(unset.size() == 6);
}

TEST_CASE("checks do not overwrite an output that is also read in place") {
  const ParallelModel twice{[](Context auto& ctx, View<const float, 1> x) {
                              auto y = fanout::output<float>(ctx);
                              for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
                              return y;
                            },
                            host_devices(2)};
  Tensor<float, 1> x(5);
  x[4] = 3;
  twice.into(x)(fanout::inout(x));
  CHECK(x[4] == 6);
}
#endif
