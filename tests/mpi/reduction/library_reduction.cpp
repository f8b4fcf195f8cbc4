// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/reduction/library_reduction.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <device/remote_device.hpp>
#include <fanout/array/to.hpp>
#include <fanout/mpi.hpp>
#include <memory/remote_memory.hpp>
#include <support/message_of.hpp>

// Reductions over all ranks of MPI_COMM_WORLD by MPI_Allreduce. A function of this name stands before the MPI's own,
// counts calls, and takes remote memory as an MPI does that is aware of GPUs.

namespace {

struct Calls {
  std::vector<int> counts;
  int remote = 0;  // with remote memory
};
Calls& calls() {
  static Calls calls;
  return calls;
}

}  // namespace

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op by, MPI_Comm over) {
  calls().counts.push_back(count);
  void* const reached = fanout_test::RemoteMemory::reach(to);
  if (reached != to) ++calls().remote;
  return PMPI_Allreduce(from, reached, count, type, by, over);
}

namespace {

using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::mpi::by_library;
using fanout::mpi::Ranks;
using fanout_test::message_of;
using fanout_test::remote_devices;
using fanout_test::RemoteDevice;
using fanout_test::RemoteMemory;

template <class F>
Calls calls_of(const F& f) {
  calls() = {};
  f();
  return std::exchange(calls(), {});
}

/// The sum of what `of(rank)` returns for the ranks.
template <class F>
auto sum_over(const Ranks& ranks, const F& of) {
  auto sum = of(std::size_t{0});
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) sum += of(rank);
  return sum;
}

template <class T, std::size_t R>
View<T, R> reached(const View<T, R>& view) {
  return {view.space() == fanout::host_memory ? view.data() : RemoteMemory::reach(view.data()), view.extents()};
}

template <class T>
using bounds = std::numeric_limits<T>;

/// The greatest and the least of values near the bounds of T, and a sum that wraps around.
struct Integers {
  template <class T>
  static auto of(std::size_t rank) {
    const auto greatest = static_cast<T>(bounds<T>::max() - static_cast<T>(rank + 1));
    const auto least = static_cast<T>(bounds<T>::lowest() + static_cast<T>(rank + 1));
    const auto mixed =
        static_cast<T>(rank == 0 ? 1 : -1);  // -1 is the least signed number, and the greatest unsigned one
    return std::tuple{fanout::pmax(least),    fanout::pmin(greatest), fanout::pmin(least), fanout::pmax(greatest),
                      fanout::psum(greatest), fanout::pmax(mixed),    fanout::pmin(mixed)};
  }
  auto forward(fanout::Context auto& ctx, View<const double, 1>) const {
    const std::size_t rank = ctx.rank();
    return std::tuple{of<std::int8_t>(rank),  of<std::uint8_t>(rank),  of<std::int16_t>(rank), of<std::uint16_t>(rank),
                      of<std::int32_t>(rank), of<std::uint32_t>(rank), of<std::int64_t>(rank), of<std::uint64_t>(rank)};
  }

  template <class T, class Result>
  static void check(std::size_t ranks, const Result& result) {
    const auto nearest = static_cast<T>(1);
    const auto furthest = static_cast<T>(ranks);
    CHECK(std::get<0>(result) == static_cast<T>(bounds<T>::lowest() + furthest));
    CHECK(std::get<1>(result) == static_cast<T>(bounds<T>::max() - furthest));
    CHECK(std::get<2>(result) == static_cast<T>(bounds<T>::lowest() + nearest));
    CHECK(std::get<3>(result) == static_cast<T>(bounds<T>::max() - nearest));
    using Wraps = std::uint64_t;
    Wraps sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) sum += static_cast<Wraps>(bounds<T>::max()) - (rank + 1);
    CHECK(std::get<4>(result) == static_cast<T>(sum));
    const auto one = static_cast<T>(1);
    const auto other = static_cast<T>(ranks == 1 ? 1 : -1);
    CHECK(std::get<5>(result) == std::max(one, other));
    CHECK(std::get<6>(result) == std::min(one, other));
  }
};

/// On one rank, values that a rank without rows must not change; NaN and bounds of numbers elsewhere.
struct Fragile {
  auto forward(View<const double, 1> x) const {
    const bool has = x.size() != 0;
    const double none = bounds<double>::quiet_NaN();
    return std::tuple{fanout::pmean(has ? -0.0 : none),
                      fanout::pmean(has ? -0.0F : bounds<float>::quiet_NaN()),
                      fanout::pmean(has ? std::complex<float>(-0.0F, 2) : std::complex<float>(1, 1)),
                      fanout::pmax(has ? bounds<std::int16_t>::lowest() : std::int16_t{7}),
                      fanout::pmin(has ? bounds<std::int32_t>::max() : std::int32_t{7}),
                      fanout::pmax(has ? -bounds<double>::infinity() : none)};
  }
};

/// 300 small arrays of two types, and a large one.
struct Gradients {
  auto forward(fanout::Context auto& ctx, View<const double, 1>) const {
    std::vector<Tensor<float, 1>> floats;
    std::vector<Tensor<std::int16_t, 1>> shorts;
    for (std::size_t i = 0; i < 150; ++i) {
      for (float& each : floats.emplace_back(i % 7)) each = static_cast<float>(i + ctx.rank());
      for (std::int16_t& each : shorts.emplace_back(i % 5)) each = static_cast<std::int16_t>(i);
    }
    Tensor<float, 1> large(300'007);
    for (std::size_t i = 0; i < large.size(); ++i) large(i) = static_cast<float>((i + ctx.rank()) % 1000);
    return std::tuple{fanout::psum(std::move(floats)), fanout::pmean(2.0F), fanout::psum(std::move(large)),
                      fanout::psum(std::move(shorts))};
  }
};

/// Values in the memory of the device.
struct Remote {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    const auto memory = ctx.device().memory();
    auto sums = Tensor<float, 1>::uninitialized({3}, memory);
    auto means = Tensor<float, 2>::uninitialized({2, 2}, memory);
    auto rows = Tensor<int, 1>::uninitialized({1}, memory);
    for (std::size_t i = 0; i < 3; ++i) reached(sums.view())[i] = static_cast<float>(i * x.size());
    const auto own = reached(x);
    float mean = 0;
    for (std::size_t i = 0; i < own.size(); ++i) mean += static_cast<float>(own(i));
    mean /= static_cast<float>(own.size());  // NaN without rows
    for (std::size_t i = 0; i < 4; ++i) reached(means.view())(i / 2, i % 2) = mean;
    reached(rows.view())[0] = static_cast<int>(x.size());
    return std::tuple{fanout::psum(std::move(sums)), fanout::pmean(std::move(means)), fanout::pmax(std::move(rows)),
                      fanout::psum(static_cast<float>(x.size()))};
  }
};

/// Rank i has i + `first` rows, whose elements are all i.
std::tuple<Tensor<double, 1>, std::size_t, double> rows_of_remote(const Ranks& ranks, std::size_t first) {
  std::size_t all = 0;
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    all += first + i;
    sum += static_cast<double>(i * (first + i));
  }
  return {Tensor<double, 1>::full({first + ranks.rank()}, static_cast<double>(ranks.rank())), all,
          sum / static_cast<double>(all)};
}

template <class D>
void check_remote(const Ranks& ranks, const fanout::DeviceSet<D>& devices, std::size_t first) {
  const auto [x, rows, mean] = rows_of_remote(ranks, first);
  if (rows == 0) return;
  const ParallelModel model{Remote{}, devices, {.ranks = ranks}};
  std::size_t most = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const fanout::Shard& shard : model.plan(first + i)) most = std::max(most, shard.rows.size());
  }
  const auto [sums, means, maximum, sum] = model(x);
  CHECK(sums.space() == devices[0].memory().space);
  for (std::size_t i = 0; i < 3; ++i) CHECK(to_host(sums)[i] == static_cast<float>(i * rows));
  for (std::size_t i = 0; i < 4; ++i) CHECK(to_host(means)(i / 2, i % 2) == doctest::Approx(mean).epsilon(1e-6));
  CHECK(to_host(maximum)[0] == static_cast<int>(most));
  CHECK(sum == static_cast<float>(rows));
}

}  // namespace

TEST_CASE("by_library adds each type of number, and takes the greatest and the least integers") {
  // [by_library]
  const fanout::mpi::Ranks ranks{MPI_COMM_WORLD, {.reduce = fanout::mpi::by_library}};
  // [/by_library]
  const ParallelModel model{Integers{}, fanout::host_devices(1), {.ranks = ranks}};
  const auto found = model(Tensor<double, 1>(1));
  Integers::check<std::int8_t>(ranks.size(), std::get<0>(found));
  Integers::check<std::uint8_t>(ranks.size(), std::get<1>(found));
  Integers::check<std::int16_t>(ranks.size(), std::get<2>(found));
  Integers::check<std::uint16_t>(ranks.size(), std::get<3>(found));
  Integers::check<std::int32_t>(ranks.size(), std::get<4>(found));
  Integers::check<std::uint32_t>(ranks.size(), std::get<5>(found));
  Integers::check<std::int64_t>(ranks.size(), std::get<6>(found));
  Integers::check<std::uint64_t>(ranks.size(), std::get<7>(found));

  const auto others = [](fanout::Context auto& ctx, View<const double, 1>) {
    const auto rank = static_cast<double>(ctx.rank());
    return std::tuple{fanout::psum(std::complex<double>(rank, -1)), fanout::psum(static_cast<long double>(rank)),
                      fanout::pmax(ctx.rank() == 1)};
  };
  const auto n = static_cast<double>(ranks.size());
  const ParallelModel model_of_others{others, fanout::host_devices(1), {.ranks = ranks}};
  const auto [complex, wide, any] = model_of_others(Tensor<double, 1>(1));
  CHECK(complex == std::complex<double>(n * (n - 1) / 2, -n));
  CHECK(wide == static_cast<long double>(n * (n - 1) / 2));
  CHECK(any == (ranks.size() > 1));
}

TEST_CASE("by_library knows which values it combines") {
  using fanout::backend::RankFold;
  using fanout::detail::FoldOverRanks;
  using fanout::detail::LibraryReduction;
  const auto takes = []<class Rule, class T>(std::type_identity<std::pair<Rule, T>>) {
    return LibraryReduction::takes(fanout::detail::rank_fold<FoldOverRanks<Rule, T>, false, T>);
  };
  using Sum = fanout::rules::Sum;
  using Max = fanout::rules::Max;
  using Product = fanout::rules::Fold<decltype([](double a, double b) { return a * b; })>;
  CHECK(takes(std::type_identity<std::pair<Sum, float>>()));
  CHECK(takes(std::type_identity<std::pair<fanout::rules::Mean, double>>()));
  CHECK(takes(std::type_identity<std::pair<Sum, std::complex<float>>>()));
  CHECK(takes(std::type_identity<std::pair<Max, std::int64_t>>()));
  CHECK(takes(std::type_identity<std::pair<Sum, std::uint8_t>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<Max, std::uint64_t>>()));  // MPICH 4.0 compares these as signed ones
  CHECK_FALSE(takes(std::type_identity<std::pair<fanout::rules::Min, bool>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<Sum, long double>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<Sum, std::complex<long double>>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<Max, double>>()));  // NaN
  CHECK_FALSE(takes(std::type_identity<std::pair<Max, fanout::mpi::RankReduction>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<Product, double>>()));
  CHECK_FALSE(takes(std::type_identity<std::pair<fanout::detail::FirstOverRanks, double>>()));
}

TEST_CASE("by_library: ranks without rows change no bit, and NaN stays the greatest") {
  const Ranks ranks{MPI_COMM_WORLD, {.reduce = by_library}};
  const ParallelModel model{Fragile{}, fanout::host_devices(1), {.ranks = ranks}};
  for (std::size_t with_rows = 0; with_rows < ranks.size(); ++with_rows) {
    const auto [a, b, c, most, least, infinite] = model(Tensor<double, 1>(ranks.rank() == with_rows ? 1 : 0));
    CHECK(a == 0);
    CHECK(std::signbit(a));
    CHECK(b == 0);
    CHECK(std::signbit(b));
    CHECK(c == std::complex<float>(0, 2));
    CHECK(std::signbit(c.real()));
    CHECK(most == bounds<std::int16_t>::lowest());
    CHECK(least == bounds<std::int32_t>::max());
    CHECK(infinite == -bounds<double>::infinity());
  }
  const auto extremes = [](View<const double, 1> x) { return std::tuple{fanout::pmax(x(0)), fanout::pmin(x(0))}; };
  const ParallelModel of_all{extremes, fanout::host_devices(1), {.ranks = ranks}};
  for (std::size_t odd = 0; odd < ranks.size(); ++odd) {
    Tensor<double, 1> x(1);
    x(0) = ranks.rank() == odd ? bounds<double>::quiet_NaN() : static_cast<double>(ranks.rank());
    const auto [most, least] = of_all(x);
    CHECK(std::isnan(most));
    CHECK(std::isnan(least));
  }
}

TEST_CASE("by_library packs a tree of many arrays into a message for each type and operation") {
  for (const bool library : {true, false}) {
    const Ranks ranks{MPI_COMM_WORLD, {.reduce = library ? by_library : fanout::mpi::in_rank_order}};
    const ParallelModel model{Gradients{}, fanout::host_devices(1), {.ranks = ranks}};
    const std::size_t n = ranks.size();
    const Calls made = calls_of([&] {
      const auto [floats, mean, large, shorts] = model(Tensor<double, 1>(1));
      for (std::size_t i = 0; i < floats.size(); ++i) {
        REQUIRE(floats[i].size() == i % 7);
        REQUIRE(shorts[i].size() == i % 5);
        for (const float each : floats[i]) REQUIRE(each == static_cast<float>(n * i + n * (n - 1) / 2));
        for (const std::int16_t each : shorts[i]) REQUIRE(each == static_cast<std::int16_t>(n * i));
      }
      CHECK(mean == 2);
      for (std::size_t i = 0; i < large.size(); ++i) {
        REQUIRE(large(i) == sum_over(ranks, [i](std::size_t rank) { return static_cast<float>((i + rank) % 1000); }));
      }
    });
    // The floats and the mean, the large array, and the shorts. Of one rank, models ask for none.
    const std::vector<int> expected{21 * 21 + 3 + 1, 300'007, 30 * 10};
    CHECK(made.counts == (library && n > 1 ? expected : std::vector<int>()));
  }
}

TEST_CASE("by_library splits what MPI cannot count") {
  const fanout::detail::MpiGroup group{MPI_COMM_WORLD};
  const auto n = static_cast<double>(group.size());
  for (const std::size_t numbers : {std::size_t{1}, std::size_t{7}, std::size_t{10}}) {
    std::vector<double> first(9);
    std::vector<std::complex<double>> second(8);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < second.size(); ++i) second[i] = {static_cast<double>(i), -1};
    using fanout::detail::FoldOverRanks;
    using Sum = fanout::rules::Sum;
    using Complex = std::complex<double>;
    const std::vector<fanout::backend::RankedValue> values{
        {.fold = &fanout::detail::rank_fold<FoldOverRanks<Sum, double>, true, double>,
         .data = first.data(),
         .count = first.size()},
        {.fold = &fanout::detail::rank_fold<FoldOverRanks<Sum, Complex>, true, Complex>,
         .data = second.data(),
         .count = second.size()}};
    const Calls made = calls_of([&] {
      fanout::detail::LibraryReduction reduction(group, values, false, {.numbers = numbers});
      reduction.run(true);
      reduction.finish();
    });
    CHECK(made.counts.size() == (25 + numbers - 1) / numbers);
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == n * static_cast<double>(i));
    for (std::size_t i = 0; i < second.size(); ++i) CHECK(second[i] == Complex(n * static_cast<double>(i), -n));
  }
}

TEST_CASE("ranks with other options are named on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const std::string text = message_of<fanout::StructureMismatch>([&] {
    const fanout::mpi::RanksOptions options{.reduce = ranks.rank() == 0 ? by_library : fanout::mpi::in_rank_order,
                                            .gpu_aware = ranks.rank() == 0};
    const Ranks other{MPI_COMM_WORLD, options};
  });
  CHECK(text.find("mpi::Ranks with .reduce = by_library, .gpu_aware = true") != std::string::npos);
  CHECK(text.find("mpi::Ranks with .reduce = in_rank_order") != std::string::npos);
}

TEST_CASE("values of other types on ranks are named, though they have the same bytes") {
  for (const auto reduce : {by_library, fanout::mpi::in_rank_order}) {
    const Ranks ranks{MPI_COMM_WORLD, {.reduce = reduce}};
    if (ranks.size() == 1) return;
    using Either = std::variant<float, std::int32_t>;
    const auto either = [](View<const double, 1>, bool first) {
      return fanout::psum(first ? Either(1.0F) : Either(std::int32_t{1}));
    };
    const ParallelModel model{either, fanout::host_devices(1), {.ranks = ranks}};
    const std::string text =
        message_of<fanout::StructureMismatch>([&] { model(Tensor<double, 1>(1), ranks.rank() == 0); });
    CHECK(text.find("psum of float at output") != std::string::npos);
    CHECK(text.find("psum of int at output") != std::string::npos);
    CHECK(std::get<0>(model(Tensor<double, 1>(1), true)) == static_cast<float>(ranks.size()));
  }
}

TEST_CASE("values in the memory of devices are combined over ranks") {
  for (const auto reduce : {by_library, fanout::mpi::in_rank_order}) {
    for (const bool aware : {false, true}) {
      if (aware && reduce != by_library) continue;
      const Ranks ranks{MPI_COMM_WORLD, {.reduce = reduce, .gpu_aware = aware}};
      for (const int devices : {1, 2}) {
        for (const std::size_t first : {std::size_t{3}, std::size_t{0}}) {
          const std::size_t before = RemoteMemory::alive();
          const Calls made = calls_of([&] { check_remote(ranks, remote_devices(devices), first); });
          CHECK(RemoteMemory::alive() == before);
          // Two messages: floats, of which one is in host memory, and ints. A rank without rows sends what it must.
          const bool direct = aware && ranks.size() > 1 && first + ranks.rank() != 0;
          CHECK(made.remote == (direct ? 1 : 0));
        }
      }
      // Ranks with other memories.
      if (ranks.rank() % 2 == 0) {
        check_remote(ranks, remote_devices(2), 0);
      } else {
        check_remote(ranks, fanout::host_devices(2), 0);
      }
    }
  }
}

TEST_CASE("an MPI that takes device memory gets packed device memory") {
  const Ranks ranks{MPI_COMM_WORLD, {.reduce = by_library, .gpu_aware = true}};
  const auto two = [](fanout::Context auto& ctx, View<const double, 1>) {
    auto first = Tensor<float, 1>::uninitialized({3}, ctx.device().memory());
    auto second = Tensor<float, 1>::uninitialized({5}, ctx.device().memory());
    for (std::size_t i = 0; i < 3; ++i) reached(first.view())[i] = 1;
    for (std::size_t i = 0; i < 5; ++i) reached(second.view())[i] = 2;
    return fanout::psum(std::tuple{std::move(first), std::move(second)});
  };
  const ParallelModel model{two, remote_devices(1), {.ranks = ranks}};
  const auto n = static_cast<float>(ranks.size());
  const int waited = RemoteMemory::counts().waited;
  const Calls made = calls_of([&] {
    const auto [first, second] = model(Tensor<double, 1>(1));
    for (std::size_t i = 0; i < 3; ++i) CHECK(to_host(first)[i] == n);
    for (std::size_t i = 0; i < 5; ++i) CHECK(to_host(second)[i] == 2 * n);
  });
  if (ranks.size() == 1) return;
  CHECK(made.counts == std::vector<int>{8});
  CHECK(made.remote == 1);
  CHECK(RemoteMemory::counts().waited > waited);
}

TEST_CASE("a device that fails before data is sent fails the call on all ranks") {
  for (const bool aware : {false, true}) {
    const Ranks ranks{MPI_COMM_WORLD, {.reduce = by_library, .gpu_aware = aware}};
    if (ranks.size() == 1) return;
    const ParallelModel model{Remote{}, remote_devices(1), {.ranks = ranks}};
    const Tensor<double, 1> x(2);
    // The last transfers of a call are those to and from the messages: let each of the call's fail in turn.
    bool failed = true;
    int found = 0;
    for (int failing = 1; failed; ++failing) {
      if (ranks.rank() == 1) RemoteMemory::failing() = failing;
      std::string text;
      try {
        static_cast<void>(model(x));
      } catch (const fanout::Error& error) {
        text = error.what();
      }
      int any = text.empty() ? 0 : 1;
      const int own = any;
      PMPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      failed = any != 0;
      // After the exchange only the rank itself fails.
      if (own != 0) ++found;
      RemoteMemory::failing() = 0;
    }
    CHECK(found > 3);
    check_remote(ranks, remote_devices(2), 1);
  }
}

TEST_CASE("scatter and gather take arrays in the memory of devices") {
  const Ranks ranks{MPI_COMM_WORLD};
  const std::size_t all = 3 * ranks.size() + 1;
  for (std::size_t root = 0; root < ranks.size(); ++root) {
    Tensor<int, 2> batch(ranks.rank() == root ? all : 0, 2);
    for (std::size_t row = 0; row < batch.extent(0); ++row) batch(row, 1) = static_cast<int>(row);
    const auto mine = ranks.scatter(to(batch, RemoteDevice(1)), root);
    CHECK(mine.space() == fanout::host_memory);
    const auto rows = ranks.rows(all);
    REQUIRE(mine.extents() == fanout::Extents<2>{rows.size(), 2});
    for (std::size_t row = 0; row < rows.size(); ++row) CHECK(mine(row, 1) == static_cast<int>(rows.first + row));
    const auto whole = ranks.gather(
        std::tuple{to(mine, RemoteDevice(0)), fanout::psum(to(Tensor<int, 1>::full({2}, 1), RemoteDevice(2)))}, root);
    REQUIRE(whole.has_value() == (ranks.rank() == root));
    if (!whole) continue;
    CHECK(std::get<0>(*whole) == batch);
    CHECK(std::get<1>(*whole)[1] == static_cast<int>(ranks.size()));
  }
}
