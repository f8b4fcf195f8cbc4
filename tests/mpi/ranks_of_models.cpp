// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/ranks_of_models.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/mpi.hpp>
#include <mpi/support/is_funneled.hpp>
#include <support/message_of.hpp>

// Models that all ranks of MPI_COMM_WORLD call together. Every rank makes the same assertions, about its own results.

namespace {

using fanout::ParallelModel;
using fanout::RowRange;
using fanout::Tensor;
using fanout::View;
using fanout::mpi::RankReduction;
using fanout::mpi::Ranks;
using fanout_test::is_funneled;
using fanout_test::message_of;
using namespace std::chrono_literals;

/// Element `row` is `row`, for the rows of this rank.
Tensor<double, 1> numbers(RowRange rows) {
  Tensor<double, 1> made(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) made(i) = static_cast<double>(rows.first + i);
  return made;
}

struct Moments {
  fanout::Sum<double> sum;
  fanout::Mean<Tensor<double, 1>> mean{Tensor<double, 1>(2)};
  fanout::Max<int> most;
};

struct Best {
  double score = 0;
  std::size_t row = 0;
};

struct Everything {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    const RowRange rows = ctx.rows();
    auto seen = fanout::output<double>(ctx);
    auto drawn = fanout::output<std::uint32_t>(ctx);
    double sum = 0;
    Best best{-1, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      seen(i) = static_cast<double>(rows.first + i);
      drawn(i) = ctx.random(i)();
      sum += x(i);
      if (x(i) > best.score) best = {x(i), rows.first + i};
    }
    const double mean = sum / static_cast<double>(x.size());  // NaN without rows
    Moments moments{.sum = sum, .most = static_cast<int>(rows.size())};
    moments.mean.value(0) = mean;
    moments.mean.value(1) = -mean;
    return std::tuple{seen,
                      drawn,
                      fanout::psum(std::vector<float>{static_cast<float>(sum), 1.0F}),
                      fanout::pmean(std::map<std::string, double>{{"mean", mean}}),
                      std::tuple{fanout::pmax(x.size() == 0 ? -1 : static_cast<int>(x(x.size() - 1))),
                                 fanout::pmin(x.size() == 0 ? -5 : static_cast<int>(rows.first))},
                      fanout::reduce(best, [](const Best& a, const Best& b) { return a.score < b.score ? b : a; }),
                      moments,
                      ctx.rank(),
                      fanout::psum(std::uint64_t{ctx.size()})};
  }
};

template <class Rows>
void check_everything(const Rows& rows_of, int devices, RankReduction reduce) {
  const Ranks ranks{MPI_COMM_WORLD, {.reduce = reduce}};
  const ParallelModel model{Everything{}, fanout::host_devices(devices), {.seed = 7, .ranks = ranks}};
  const ParallelModel alone{Everything{}, fanout::host_devices(1), {.seed = 7}};
  std::size_t all = 0;
  std::size_t begin = 0;
  std::size_t shards = 0;
  std::size_t first_shard = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == ranks.rank()) std::tie(begin, first_shard) = std::tie(all, shards);
    all += rows_of(i);
    shards += model.plan(rows_of(i)).size();
  }
  const RowRange mine{begin, begin + rows_of(ranks.rank())};
  for (int call = 0; call < 2; ++call) {
    const auto [seen, drawn, sums, means, extremes, best, moments, shard, sizes] = model(numbers(mine));
    const auto expected = alone(numbers({0, all}));
    CHECK(seen == numbers(mine));
    for (std::size_t i = 0; i < mine.size(); ++i) CHECK(drawn(i) == std::get<1>(expected)(mine.first + i));
    CHECK(sums == std::vector<float>{std::get<2>(expected)[0], static_cast<float>(shards)});
    if (all != 0) {
      CHECK(means.at("mean") == doctest::Approx(std::get<3>(expected).at("mean")).epsilon(1e-14));
      CHECK(moments.mean.value(1) == doctest::Approx(std::get<6>(expected).mean.value(1)).epsilon(1e-14));
      CHECK(std::get<0>(extremes) == static_cast<int>(all) - 1);
      CHECK(std::get<1>(extremes) == 0);
    }
    CHECK(best.row == std::get<5>(expected).row);
    CHECK(moments.sum.value == std::get<6>(expected).sum.value);
    REQUIRE(shard.size() == model.plan(mine.size()).size());
    for (std::size_t i = 0; i < shard.size(); ++i) CHECK(shard(i) == first_shard + i);
    CHECK(sizes == shards * shards);
  }
}

struct Counted {
  fanout::Sum<int> rows;
  fanout::Mean<Tensor<double, 1>> mean;
  fanout::Max<double> most{-1};
  fanout::First<double> begin{-1};

  void forward(View<const double, 1> x) {
    rows.value += static_cast<int>(x.size());
    mean = Tensor<double, 1>(1);
    for (const double each : x) mean.value(0) += each / static_cast<double>(x.size());
    if (x.size() == 0) {
      mean.value(0) = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    most = std::max(most.value, x(x.size() - 1));
    begin = x(0);
  }
};

struct Fails {
  auto forward(View<const double, 1> x) const {
    for (const double each : x) {
      if (each < 0) throw std::runtime_error("row of " + std::to_string(each));
    }
    return fanout::psum(static_cast<double>(x.size()));
  }
};

struct LosesDevice {
  static double rows_of(View<const double, 1> x) {
    for (const double each : x) {
      if (each < 0) throw fanout::DeviceError("a lost device");
    }
    return static_cast<double>(x.size());
  }
  auto forward(View<const double, 1> x) const { return fanout::psum(rows_of(x)); }
};
struct LosesDeviceOnce {
  std::atomic<bool>* loses;
  auto forward(View<const double, 1> x) const {
    if (loses->exchange(false)) throw fanout::DeviceError("a lost device");
    return fanout::psum(LosesDevice::rows_of(x));
  }
};
struct MeetsUntilDeviceIsLost {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x) const {
    std::vector<double> rows{LosesDevice::rows_of(x)};
    ctx.communicator().all_reduce(rows);
    return fanout::psum(rows[0]);
  }
};

/// Combines values whose result shows their order, and which rank has sent them.
struct InOrder {
  std::size_t count;

  auto forward(View<const double, 1> x) const {
    const double own = x.size() == 0 ? 1e9 : x(0);
    return std::tuple{fanout::psum(static_cast<signed char>(x.size())),
                      fanout::reduce(std::vector<double>(count, own), [](double a, double b) { return a / 3 + b; }),
                      fanout::pmax(static_cast<short>(x.size()))};
  }
};

/// Results whose structure depends on an argument.
struct Keys {
  auto forward(View<const double, 1> x, const std::string& key) const {
    return fanout::psum(std::map<std::string, double>{{key, x(0)}});
  }
};
enum class Color { red, blue };
template <class Key>
struct KeysOf {
  auto forward(View<const double, 1> x, const Key& key) const {
    return fanout::psum(std::map<Key, double>{{key, x(0)}});
  }
};
template <class Key>
struct HasMap {
  std::map<Key, int> counts;
  int forward(View<const double, 1> x) const { return static_cast<int>(x.size()); }
};
struct Lists {
  auto forward(View<const double, 1> x, std::size_t longer) const {
    std::vector<std::vector<double>> lists(2, std::vector<double>{x(0)});
    lists[longer].push_back(x(0));
    std::vector<std::vector<Tensor<double, 1>>> arrays(2);
    for (std::size_t i = 0; i < 2; ++i) {
      for (const double each : lists[i]) arrays[i].push_back(Tensor<double, 1>::full({1}, each));
    }
    return fanout::psum(std::move(arrays));
  }
};
struct OneOfTwo {
  std::pair<std::optional<fanout::Sum<double>>, std::optional<fanout::Sum<double>>> forward(View<const double, 1> x,
                                                                                            bool second) const {
    if (second) return {std::nullopt, x(0)};
    return {x(0), std::nullopt};
  }
};
struct SumOrMean {
  std::variant<fanout::Sum<double>, fanout::Mean<double>> forward(View<const double, 1> x, bool means) const {
    if (means) return fanout::Mean<double>(x(0));
    return fanout::Sum<double>(x(0));
  }
};

/// A model with a combined field. Its forward is const, so the field stays as it is.
struct SumsBesides {
  fanout::Sum<int> rows;

  auto forward(View<const double, 1> x) const {
    if (x(0) < 0) throw std::runtime_error("below zero");
    return fanout::psum(x(0));
  }
  auto forward(fanout::Context auto& ctx, View<const double, 1> x, int) const {
    double sum = x(0);
    ctx.communicator().all_reduce(sum);
    return fanout::first(sum);
  }
};

struct Keeps {
  std::map<std::string, double> weights;
  std::variant<std::int64_t, double> step;

  double forward(View<const double, 1> x) const { return x(0); }
};

struct Scales {
  double by = 1;
  auto forward(View<const double, 1> x) const { return fanout::psum(by * x(0)); }
};

struct Draws {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x, View<const double, 1>) const {
    auto drawn = fanout::output<std::uint32_t>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) drawn(i) = ctx.random(i)();
    return drawn;
  }
  Tensor<double, 1> forward(View<const double, 1> x) const { return Tensor<double, 1>(x.size()); }
};

struct alignas(256) Wide {
  double value = 0;
};

struct Labels {
  auto operator<=>(const Labels&) const = default;
};

struct Learns {
  double scale = 0;
  std::map<std::string, Tensor<float, 2>> weights;
  fanout::Sum<int> seen;
  Labels name;
  fanout::PerReplica<int> own;

  auto forward(View<const double, 1> x) const { return fanout::psum(scale * static_cast<double>(x.size())); }
};

}  // namespace

TEST_CASE("a call counts rows, shards and random numbers over all ranks, and reduces over all rows") {
  for (const RankReduction reduce : {fanout::mpi::in_rank_order, fanout::mpi::by_library}) {
    for (const int devices : {1, 2}) {
      check_everything([](std::size_t) { return std::size_t{4}; }, devices, reduce);
      check_everything([](std::size_t rank) { return 2 + 3 * rank; }, devices, reduce);
      check_everything([](std::size_t rank) { return rank == 1 ? std::size_t{5} : std::size_t{3}; }, devices, reduce);
    }
  }
}

TEST_CASE("random numbers do not depend on the number of ranks, also after calls that draw none and calls that fail") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const int devices : {1, 2}) {
    const ParallelModel model{Draws{}, fanout::host_devices(devices), {.seed = 7, .ranks = ranks}};
    const auto check_draws_as_call = [&](std::uint32_t call, auto& drawn) {
      REQUIRE(drawn.size() == 2);
      for (std::size_t i = 0; i < 2; ++i) CHECK(drawn(i) == fanout::RandomStream(7, call, 2 * ranks.rank() + i)());
    };
    const Tensor<double, 1> x(2);
    const auto first = model(x, x);
    check_draws_as_call(0, first);
    // These exchange nothing, but have numbers. Those of rank 0 count.
    for (std::size_t i = 0; i <= ranks.rank(); ++i) model(x);
    const auto third = model(x, x);
    check_draws_as_call(2, third);
    CHECK_THROWS_AS(model(x, Tensor<double, 1>(3)), fanout::ShapeMismatch);
    const auto fourth = model(x, x);
    check_draws_as_call(3, fourth);
    if (is_funneled()) continue;
    const auto fifth = model.async(x, x).get();
    check_draws_as_call(4, fifth);
  }
}

TEST_CASE("ranks without rows weigh nothing") {
  for (const RankReduction reduce : {fanout::mpi::in_rank_order, fanout::mpi::by_library}) {
    for (const int devices : {1, 2}) {
      check_everything([](std::size_t rank) { return rank == 0 ? std::size_t{3} : std::size_t{0}; }, devices, reduce);
      check_everything(
          [](std::size_t rank) { return rank % 2 == 1 ? std::size_t{5} : std::size_t{rank == 0 ? 0U : 1U}; }, devices,
          reduce);
    }
  }
}

TEST_CASE("few values and many are combined in the order of the ranks, with bitwise the same result") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const bool empty : {false, true}) {  // every second rank has no rows
    const auto rows_of = [&](std::size_t rank) { return empty && rank % 2 == 0 && ranks.size() > 1 ? 0U : 1U; };
    const auto first_of = [](std::size_t rank) { return 1 / (static_cast<double>(rank) + 0.3); };
    double expected = 0;
    int all = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (rows_of(rank) == 0) continue;
      expected = all == 0 ? first_of(rank) : expected / 3 + first_of(rank);
      ++all;
    }
    Tensor<double, 1> mine(rows_of(ranks.rank()));
    for (double& value : mine) value = first_of(ranks.rank());
    for (const std::size_t count : {1U, 3U, 126U, 127U, 128U, 1000U}) {  // above 1 KiB: by slices
      const ParallelModel model{InOrder{count}, fanout::host_devices(1), {.ranks = ranks}};
      const auto [sum, values, most] = model(mine);
      CHECK(sum == all);
      CHECK(values == std::vector<double>(count, expected));
      CHECK(most == 1);
    }
  }
}

TEST_CASE("combined fields are those of all rows of all ranks, and the same on all") {
  for (const auto& [reduce, devices] : {std::pair{fanout::mpi::in_rank_order, 1},
                                        {fanout::mpi::in_rank_order, 2},
                                        {fanout::mpi::by_library, 1},
                                        {fanout::mpi::by_library, 2}}) {
    const Ranks ranks{MPI_COMM_WORLD, {.reduce = reduce}};
    ParallelModel model{
        Counted{.rows = 100, .mean = {}, .most = -1, .begin = -1}, fanout::host_devices(devices), {.ranks = ranks}};
    const std::size_t all = 3 * ranks.size() + 1;
    for (int call = 1; call <= 3; ++call) {
      // In the last call only the last rank has rows.
      RowRange mine = ranks.rows(all);
      if (call == 3) mine = ranks.rank() + 1 == ranks.size() ? RowRange{0, all} : RowRange{0, 0};
      model(numbers(mine));
      CHECK(model.model().rows.value == 100 + call * static_cast<int>(all));
      CHECK(model.model().mean.value(0) == doctest::Approx(static_cast<double>(all - 1) / 2).epsilon(1e-14));
      CHECK(model.model().most.value == static_cast<double>(all - 1));
      CHECK(model.model().begin.value == 0);
    }
  }
}

TEST_CASE("broadcast_from gives one rank's model to all") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (std::size_t root = 0; root < ranks.size(); ++root) {
    const auto own = static_cast<double>(ranks.rank());
    ParallelModel model{Learns{.scale = own,
                               .weights = {{"a", Tensor<float, 2>::full({2, 3}, static_cast<float>(own))}},
                               .seen = static_cast<int>(own),
                               .name = Labels{},
                               .own = fanout::PerReplica<int>(static_cast<int>(own))},
                        fanout::host_devices(2),
                        {.ranks = ranks}};
    model.broadcast_from(root);
    CHECK(model.model().scale == static_cast<double>(root));
    CHECK(model.model().weights.at("a")(1, 2) == static_cast<float>(root));
    CHECK(model.model().seen.value == static_cast<int>(root));
    CHECK(*model.model().own == static_cast<int>(own));
    CHECK(model(Tensor<double, 1>(2)) == static_cast<double>(root * 2 * ranks.size()));  // its replicas, too
  }
}

TEST_CASE("broadcast_from names models and roots that differ") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  ParallelModel model{
      Learns{.scale = 1, .weights = {{"a", Tensor<float, 2>(2, 3 + ranks.rank())}}, .seen = 0, .name = {}, .own = {}},
      fanout::host_devices(1),
      {.ranks = ranks}};
  const std::string text = message_of<fanout::StructureMismatch>([&] { model.broadcast_from(0); });
  CHECK(text.find("first of float[2, 3] at model.weights[\"a\"]") != std::string::npos);
  CHECK(text.find("first of float[2, 4]") != std::string::npos);
  CHECK(message_of<fanout::StructureMismatch>([&] {
          model.broadcast_from(ranks.rank() == 0 ? 0 : 1);
        }).find("broadcast_from(1) of ") != std::string::npos);
}

TEST_CASE("broadcast_from refuses a root that is no rank, also on one rank") {
  const Ranks ranks{MPI_COMM_WORLD};
  ParallelModel model{Scales{}, fanout::host_devices(1), {.ranks = ranks}};
  const std::string text = message_of<fanout::InvalidArgument>([&] { model.broadcast_from(99); });
  CHECK(text == "a root that is no rank at broadcast_from: expected a rank below " + std::to_string(ranks.size()) +
                    ", found 99");
  CHECK(model(Tensor<double, 1>::full({1}, 1)) == static_cast<double>(ranks.size()));
}

TEST_CASE("a forward that throws on a rank throws on all ranks, and names rank, shard, rows and text") {
  const Ranks ranks{MPI_COMM_WORLD};
  const ParallelModel model{Fails{}, fanout::host_devices(2), {.ranks = ranks}};
  for (std::size_t bad = 0; bad < ranks.size(); ++bad) {
    Tensor<double, 1> x(4);
    if (ranks.rank() == bad) x(3) = -1;
    std::string text;
    try {
      model(x);
    } catch (const fanout::ReplicaError& error) {
      text = error.what();
      REQUIRE(error.failures().size() == 1);
      CHECK(error.failures()[0].shard == 2 * bad + 1);
      CHECK(error.failures()[0].rows == RowRange{4 * bad + 2, 4 * bad + 4});
      if (ranks.rank() == bad) CHECK(error.get_if<std::runtime_error>() != nullptr);
    }
    CHECK(text.find("failed on 1 of " + std::to_string(2 * ranks.size()) + " replicas") != std::string::npos);
    if (ranks.size() > 1) CHECK(text.find("of rank " + std::to_string(bad) + " on ") != std::string::npos);
    CHECK(text.find("row of -1") != std::string::npos);
    CHECK(model(Tensor<double, 1>(4)) == 4.0 * static_cast<double>(ranks.size()));
  }
}

TEST_CASE("a rank that cannot begin a call throws its own error, and the others name it") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto count = [](View<const double, 1> x, View<const double, 1>) {
    return fanout::psum(static_cast<double>(x.size()));
  };
  const ParallelModel model{count, fanout::host_devices(2), {.ranks = ranks}};
  const std::size_t rows = ranks.rank() == 1 ? 3 : 2;
  const std::string text = message_of<fanout::Error>([&] { model(Tensor<double, 1>(2), Tensor<double, 1>(rows)); });
  CHECK((text.find("a call of all ranks failed") != std::string::npos) == (ranks.rank() != 1));
  CHECK((text.find("rank 1 on ") != std::string::npos) == (ranks.rank() != 1));
  CHECK(model(Tensor<double, 1>(2), Tensor<double, 1>(2)) == 2.0 * static_cast<double>(ranks.size()));
}

TEST_CASE("ranks that make different calls are all named, on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const ParallelModel one{Fails{}, fanout::host_devices(1), {.ranks = ranks}};
  const ParallelModel other{Everything{}, fanout::host_devices(1), {.ranks = ranks}};
  const Tensor<double, 1> x(2);
  const std::string text = message_of<fanout::StructureMismatch>([&] {
    if (ranks.rank() == 0) {
      one(x);
    } else {
      other(x);
    }
  });
  CHECK(text.find("rank 0 on ") != std::string::npos);
  CHECK(text.find("Fails returns") != std::string::npos);
  CHECK(text.find("rank 1 on ") != std::string::npos);
  CHECK(text.find("Everything returns") != std::string::npos);
  CHECK(message_of<fanout::StructureMismatch>([&] {
          if (ranks.rank() == 0) {
            static_cast<void>(ranks.gather(x, 0));
          } else {
            one(x);
          }
        }).find("gather with root 0") != std::string::npos);
}

TEST_CASE("reductions of other extents on ranks are named with their leaves, before anything is sent") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto gradients = [](View<const double, 1>, std::size_t n) {
    return std::tuple{fanout::psum(1.0), fanout::psum(Tensor<float, 2>(2, n))};
  };
  const ParallelModel model{gradients, fanout::host_devices(1), {.ranks = ranks}};
  const Tensor<double, 1> x(2);
  const std::string text =
      message_of<fanout::StructureMismatch>([&] { model(x, ranks.rank() == 0 ? std::size_t{3} : std::size_t{4}); });
  CHECK(text.find("psum of double at output[0], psum of float[2, 3] at output[1]") != std::string::npos);
  CHECK(text.find("psum of float[2, 4] at output[1]") != std::string::npos);
  CHECK(std::get<0>(model(x, std::size_t{3})) == static_cast<double>(ranks.size()));
}

TEST_CASE("values at other places of a tree, or of other rules, are named and not combined") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto differs = [](const auto& call, const char* first, const char* second) {
    const std::string text = message_of<fanout::StructureMismatch>(call);
    INFO(text);
    CHECK(text.find(first) != std::string::npos);
    CHECK(text.find(second) != std::string::npos);
  };
  const Tensor<double, 1> x = Tensor<double, 1>::full({1}, 1);
  const bool is_first = ranks.rank() == 0;
  const auto devices = fanout::host_devices(1);
  const ParallelModel keys{Keys{}, devices, {.ranks = ranks}};
  differs([&] { keys(x, std::string(is_first ? "cats" : "dogs")); }, "output[\"cats\"]", "output[\"dogs\"]");
  const auto differ = [&](const auto& first, const auto& other, const char* of_first, const char* of_other) {
    using Key = std::remove_cvref_t<decltype(first)>;
    const ParallelModel model{KeysOf<Key>{}, devices, {.ranks = ranks}};
    differs([&] { model(x, is_first ? first : other); }, of_first, of_other);
    CHECK(model(x, first).at(first) == static_cast<double>(ranks.size()));
    ParallelModel has_map{HasMap<Key>{{{is_first ? first : other, 1}}}, devices, {.ranks = ranks}};
    differs([&] { has_map.broadcast_from(0); }, of_first, of_other);
  };
  differ(Color::red, Color::blue, "[0]", "[1]");
  differ(0.1, 0.1000001, "[0.1]", "[0.1000001]");
  differ(std::pair{1, Color::red}, std::pair{1, Color::blue}, "[(1, 0)]", "[(1, 1)]");
  const ParallelModel nans{KeysOf<double>{}, devices, {.ranks = ranks}};
  CHECK_THROWS_AS(nans(x, std::nan("")), fanout::Error);
  const ParallelModel lists{Lists{}, devices, {.ranks = ranks}};
  differs([&] { lists(x, std::size_t{is_first ? 0U : 1U}); }, "output[0][1]", "output[1][1]");
  const ParallelModel one{OneOfTwo{}, devices, {.ranks = ranks}};
  differs([&] { one(x, is_first); }, "psum of double at output[0]", "psum of double at output[1]");
  const ParallelModel rules{SumOrMean{}, devices, {.ranks = ranks}};
  differs([&] { rules(x, is_first); }, "psum of double at output", "pmean of double at output");
  ParallelModel keeps{Keeps{{{is_first ? "a" : "b", 1}}, 1.0}, devices, {.ranks = ranks}};
  differs([&] { keeps.broadcast_from(0); }, "model.weights[\"a\"]", "model.weights[\"b\"]");
  keeps.update([&](Keeps& model) { model = {{{"a", 1}}, 1.0}; });
  if (!is_first) keeps.update([](Keeps& model) { model.step = std::int64_t{1}; });
  differs([&] { keeps.broadcast_from(0); }, "first of double at model.step", "first of long int at model.step");
  keeps.update([](Keeps& model) { model.step = 1.0; });
  keeps.broadcast_from(0);
  CHECK(keys(x, std::string("cats")).at("cats") == static_cast<double>(ranks.size()));
}

TEST_CASE("two models of one type that ranks call in other orders are told apart") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  ParallelModel one{Scales{1}, fanout::host_devices(1), {.ranks = ranks}};
  ParallelModel other{Scales{100}, fanout::host_devices(1), {.ranks = ranks}};
  const Tensor<double, 1> x = Tensor<double, 1>::full({1}, 1);
  const std::string text = message_of<fanout::StructureMismatch>([&] { (ranks.rank() == 0 ? one : other)(x); });
  CHECK(text.find("model 0, call 0: ") != std::string::npos);
  CHECK(text.find("model 1, call 0: ") != std::string::npos);
  CHECK(message_of<fanout::StructureMismatch>([&] {
          (ranks.rank() == 0 ? one : other).broadcast_from(0);
        }).find("model 1: broadcast_from(0) of ") != std::string::npos);
  one.broadcast_from(0);
  // The calls above have numbers only on the ranks that made them.
  ParallelModel next{Scales{100}, fanout::host_devices(1), {.ranks = ranks}};
  CHECK(next(x) == 100 * static_cast<double>(ranks.size()));
}

TEST_CASE("a function of reduce that throws on a rank throws on all") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto times = [](View<const double, 1> x) {
    return fanout::reduce(x(0), [](double a, double b) {
      if (a * b < 0) throw std::domain_error("less than 0");
      return a * b;
    });
  };
  const ParallelModel model{times, fanout::host_devices(1), {.ranks = ranks}};
  Tensor<double, 1> x(1);
  x(0) = ranks.rank() == 1 ? -2 : 2;
  std::string text;
  try {
    model(x);
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text.find("less than 0") != std::string::npos);
  x(0) = 2;
  CHECK(model(x) == std::pow(2.0, static_cast<double>(ranks.size())));
}

TEST_CASE("a value that cannot be sent as bytes is refused on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const auto words = [](View<const double, 1>) {
    return fanout::reduce(std::map<std::string, int>{{"a", 1}},
                          [](const std::map<std::string, int>& a, const std::map<std::string, int>&) { return a; });
  };
  const ParallelModel model{words, fanout::host_devices(1), {.ranks = ranks}};
  const std::string text = message_of<fanout::Error>([&] { model(Tensor<double, 1>(2)); });
  CHECK(text.find("cannot be sent as bytes at output: expected numbers") != std::string::npos);
}

TEST_CASE("a value that would not be aligned where it arrives is refused on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto wide = [](View<const double, 1> x) {
    return fanout::reduce(Wide{x(0)}, [](const Wide& a, const Wide& b) { return Wide{a.value + b.value}; });
  };
  const Tensor<double, 1> x = Tensor<double, 1>::full({2}, 1);
  const ParallelModel model{wide, fanout::host_devices(2), {.ranks = ranks}};
  if (ranks.size() == 1) {
    CHECK(model(x).value == 2);
  } else {
    const std::string text = message_of<fanout::Error>([&] { model(x); });
    CHECK(text.find("a trivially copyable type whose alignment is at most 64") != std::string::npos);
  }
}

TEST_CASE("a call that needs no other rank exchanges nothing") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto twice = [](View<const double, 1> x) {
    Tensor<double, 1> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y(i) = 2 * x(i);
    return y;
  };
  const ParallelModel model{twice, fanout::host_devices(2), {.ranks = ranks}};
  if (ranks.rank() == 0) CHECK(model(numbers({1, 3}))(1) == 4);  // no other rank calls it
}

TEST_CASE("asynchronous calls reduce over ranks when their results are taken") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto n = static_cast<double>(ranks.size());
  const ParallelModel model{Fails{}, fanout::host_devices(2), {.ranks = ranks}};
  const Tensor<double, 1> x(4);
  auto first = model.async(x);
  auto second = model.async(x);
  CHECK(second.get() == 4 * n);
  CHECK(first.get() == 4 * n);
  if (ranks.size() == 1) return;
  // A result that one rank does not take.
  const std::string text = message_of<fanout::Error>([&] {
    auto pending = model.async(x);
    if (ranks.rank() != 0) pending.get();
    throw fanout::Error("dropped");
  });
  CHECK(text.find(ranks.rank() == 0 ? "dropped" : "was not taken") != std::string::npos);
  CHECK(model(x) == 4 * n);
}

TEST_CASE("an error of a call of all ranks says why a shard was not run again") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const ParallelModel model{LosesDevice{}, fanout::host_devices(2), {.retry = {.times = 1}, .ranks = ranks}};
  Tensor<double, 1> x(4);
  if (ranks.rank() == 1) x(3) = -1;
  const std::string text = message_of<fanout::ReplicaError>([&] { model.async(x).get(); });
  CHECK(text.find("failed on 1 of " + std::to_string(2 * ranks.size()) + " replicas") != std::string::npos);
  CHECK(text.find("not run again") == std::string::npos);  // it was, and failed again
  const ParallelModel with_collectives{
      MeetsUntilDeviceIsLost{}, fanout::host_devices(is_funneled() ? 1 : 2), {.retry = {.times = 1}, .ranks = ranks}};
  CHECK(message_of<fanout::ReplicaError>([&] {
          with_collectives(x);
        }).ends_with("\n  not run again on another device, since forward has collectives"));
  CHECK(model(Tensor<double, 1>(4)) == 4.0 * static_cast<double>(ranks.size()));
}

TEST_CASE("an asynchronous call of all ranks runs a shard again whose device failed on one of them") {
  const Ranks ranks{MPI_COMM_WORLD};
  std::atomic<bool> loses{ranks.rank() == 0};
  const ParallelModel model{LosesDeviceOnce{&loses}, fanout::host_devices(2), {.retry = {.times = 1}, .ranks = ranks}};
  const Tensor<double, 1> x(4);
  auto pending = model.async(x);
  CHECK(model(x) == 4.0 * static_cast<double>(ranks.size()));
  CHECK(pending.get() == 4.0 * static_cast<double>(ranks.size()));
  CHECK_FALSE(loses);
}

TEST_CASE("an asynchronous call combines fields on a device's thread, which FUNNELED does not allow") {
  const Ranks ranks{MPI_COMM_WORLD};
  const Tensor<double, 1> x(4);
  ParallelModel counted{Counted{}, fanout::host_devices(2), {.ranks = ranks}};
  if (is_funneled() && ranks.size() > 1) {
    const std::string text = message_of<fanout::Error>([&] { counted.async(x).get(); });
    CHECK(text.find("expected MPI_THREAD_SERIALIZED or higher, found MPI_THREAD_FUNNELED") != std::string::npos);
    counted(x);
  } else {
    counted.async(x).get();
  }
  CHECK(counted.model().rows.value == 4 * static_cast<int>(ranks.size()));
}

TEST_CASE("asynchronous calls with combined fields combine in the order in which they are made") {
  if (is_funneled()) return;
  const Ranks ranks{MPI_COMM_WORLD};
  const ParallelModel counted{Counted{}, fanout::host_devices(2), {.ranks = ranks}};
  const ParallelModel sums{Scales{}, fanout::host_devices(1), {.ranks = ranks}};
  const auto all = static_cast<double>(ranks.size());
  const RowRange mine{4 * ranks.rank(), 4 * ranks.rank() + 4};
  for (int call = 0; call < 50; ++call) {
    auto first = counted.async(numbers(mine));
    auto second = counted.async(numbers(mine));
    auto sum = sums.async(Tensor<double, 1>::full({1}, 1));
    const auto gathered = ranks.gather(numbers(mine), 0);
    if (gathered) CHECK(gathered->size() == 4 * ranks.size());
    first.get();
    CHECK(sum.get() == all);
    second.get();
    REQUIRE(counted.model().rows.value == (call + 1) * 8 * static_cast<int>(ranks.size()));
    CHECK(counted.model().most.value == 4 * all - 1);
  }
}

TEST_CASE("an asynchronous call that changes no combined fields makes its steps when its result is taken") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const ParallelModel model{SumsBesides{}, fanout::host_devices(1), {.ranks = ranks}};
  const ParallelModel sums{Scales{}, fanout::host_devices(1), {.ranks = ranks}};
  const auto all = static_cast<double>(ranks.size());
  const Tensor<double, 1> ones = Tensor<double, 1>::full({1}, 1);
  const auto check_sums = [&] {
    if (ranks.rank() == 0) std::this_thread::sleep_for(5ms);  // so that the device's thread comes first
    for (int call = 0; call < 3; ++call) CHECK(sums(ones) == all);
  };
  for (int call = 0; call < 5; ++call) {
    auto wrong = model.async(Tensor<double, 1>::full({1}, ranks.rank() == 0 ? -1 : 1));
    check_sums();
    CHECK(message_of<fanout::ReplicaError>([&] { wrong.get(); }).find("below zero") != std::string::npos);
    if (is_funneled()) continue;
    auto meets = model.async(ones, 1);
    check_sums();
    CHECK(meets.get() == all);
  }
}

TEST_CASE("large reductions and trees of many arrays are those of all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto big = [](fanout::Context auto& ctx, View<const double, 1>) {
    Tensor<float, 1> flat(1'000'003);  // more blocks than are in flight
    for (std::size_t i = 0; i < flat.size(); ++i) flat(i) = static_cast<float>((i + ctx.rank()) % 1000);
    std::vector<Tensor<std::int16_t, 1>> many;
    for (std::size_t i = 0; i < 300; ++i) {
      for (std::int16_t& each : many.emplace_back(i % 7)) each = static_cast<std::int16_t>(i);
    }
    return fanout::psum(std::tuple{std::move(flat), std::move(many)});
  };
  const ParallelModel model{big, fanout::host_devices(1), {.ranks = ranks}};
  const auto [flat, many] = model(Tensor<double, 1>(1));
  for (std::size_t i = 0; i < flat.size(); ++i) {
    float expected = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) expected += static_cast<float>((i + rank) % 1000);
    REQUIRE(flat(i) == expected);
  }
  for (std::size_t i = 0; i < many.size(); ++i) {
    for (const std::int16_t each : many[i]) REQUIRE(each == static_cast<std::int16_t>(i * ranks.size()));
  }
}
