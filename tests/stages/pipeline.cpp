// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/stages.hpp>

#include "support/message_of.hpp"

using fanout::broadcast;
using fanout::Context;
using fanout::host_devices;
using fanout::inout;
using fanout::Options;
using fanout::output;
using fanout::ParallelModel;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::pmax;
using fanout::pmean;
using fanout::psum;
using fanout::Range;
using fanout::stage;
using fanout::Tensor;
using fanout::View;
using namespace fanout::literals;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Rows = View<const double, 2>;

Tensor<double, 2> batch(std::size_t rows) {
  Tensor<double, 2> x({rows, 3});
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = 0.1 * static_cast<double>(i);
  return x;
}

template <class T, std::size_t R>
bool same(const Tensor<T, R>& a, const Tensor<T, R>& b) {
  return a.extents() == b.extents() && std::equal(a.data(), a.data() + a.size(), b.data());
}

/// Adds random numbers to its rows.
struct Noisy {
  auto forward(Context auto& ctx, Rows x) const {
    auto y = output<double>(ctx, x.extent(1));
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      auto random = ctx.random(row);
      for (std::size_t i = 0; i < x.extent(1); ++i) y(row, i) = 1.5 * x(row, i) + random.uniform();
    }
    return y;
  }
};

/// Gives its rows and their sums.
struct WithSums {
  auto forward(Context auto& ctx, Rows x) const {
    auto y = output<double>(ctx, x.extent(1));
    auto sums = output<double>(ctx);
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      sums(row) = 0;
      for (std::size_t i = 0; i < x.extent(1); ++i) {
        y(row, i) = x(row, i) - 0.25;
        sums(row) += x(row, i);
      }
    }
    return fanout::dict("y"_k = y, "sums"_k = sums);
  }
};

/// Returns rows, their numbers in the batch, and reductions of them.
struct Last {
  auto forward(Context auto& ctx, const auto& in) const {
    auto y = output<double>(ctx, in["y"_k].extent(1));
    auto row_in_batch = output<std::size_t>(ctx);
    double most = 0;
    std::size_t count = 0;
    for (std::size_t row = 0; row < y.extent(0); ++row, ++count) {
      for (std::size_t i = 0; i < y.extent(1); ++i) y(row, i) = in["y"_k](row, i) * in["sums"_k](row);
      row_in_batch(row) = ctx.rows().first + row;
      most = std::max(most, in["sums"_k](row));
    }
    return std::tuple{y, row_in_batch, pmax(most), psum(count), fanout::first(std::string("text"))};
  }
};

const auto copies = [](View<const double, 1> x) { return Tensor<double, 1>(x); };

}  // namespace

TEST_CASE("a pipeline gives the bits of its stages called one after the other") {
  const Options seeded{.seed = 5};
  const auto check = [&](std::size_t rows, std::size_t micro_batches, int first, int second, std::size_t in_flight) {
    CAPTURE(rows);
    CAPTURE(micro_batches);
    CAPTURE(first);
    CAPTURE(second);
    CAPTURE(in_flight);
    const ParallelModel noisy{Noisy{}, host_devices(1), seeded};
    const ParallelModel with_sums{WithSums{}, host_devices(1)};
    const ParallelModel last{Last{}, host_devices(1)};
    const Pipeline net{PipelineOptions{.micro_batches = micro_batches, .in_flight = in_flight},
                       stage(Noisy{}, host_devices(first), seeded), stage(WithSums{}, host_devices(second)),
                       stage(Last{}, host_devices(1))};
    const auto x = batch(rows);
    for (int call = 0; call < 2; ++call) {  // each has random numbers of its own
      const auto [y, numbers, most, count, text] = net(x);
      const auto [wanted, wanted_numbers, wanted_most, wanted_count, wanted_text] = last(with_sums(noisy(x)));
      CHECK(same(y, wanted));
      CHECK(same(numbers, wanted_numbers));
      CHECK(most == wanted_most);
      CHECK(count == rows);
      CHECK(text == "text");
    }
  };
  for (const std::size_t rows : std::vector<std::size_t>{0, 1, 2, 7, 101}) {
    for (const std::size_t micro_batches : std::vector<std::size_t>{1, 2, 7, 32}) {
      for (const int first : {1, 3}) {
        for (const int second : {1, 2}) {
          for (const std::size_t in_flight : std::vector<std::size_t>{0, 1, 3})
            check(rows, micro_batches, first, second, in_flight);
        }
      }
    }
  }
}

TEST_CASE("one stage and many of them") {
  const auto twice = [](View<const double, 1> x) {
    Tensor<double, 1> y(x);
    for (double& value : y) value *= 2;
    return y;
  };
  Tensor<double, 1> x(10);
  for (std::size_t i = 0; i < 10; ++i) x(i) = static_cast<double>(i);
  const Pipeline one{stage(twice, host_devices(2))};
  CHECK(one(x)(9) == 18);
  const Pipeline one_in_parts{PipelineOptions{.micro_batches = 3}, stage(twice, host_devices(2))};
  CHECK(one_in_parts(x)(9) == 18);
  const auto at = [&] { return stage(twice, host_devices(1)); };
  const Pipeline eight{at(), at(), at(), at(), at(), at(), at(), at()};
  CHECK(eight(x)(9) == 9 * 256);
  const auto devices = host_devices(2);
  using OneDevice = fanout::DeviceSet<fanout::HostDevice>;
  const Pipeline on_other_devices{stage(twice, OneDevice({devices[0]})), stage(twice, OneDevice({devices[1]}))};
  CHECK(on_other_devices(x)(9) == 36);
}

TEST_CASE("a stage gives the next one any tree of rows") {
  using Column = Tensor<double, 1>;
  const auto make = [](View<const double, 1> x) {
    return std::tuple{fanout::dict("left"_k = Column(x), "right"_k = std::optional(Column(x))),
                      std::map<int, std::vector<double>>{{3, std::vector<double>(x.begin(), x.end())}}};
  };
  const auto add = [](const auto& tree) {
    const auto& [dict, map] = tree;
    Column sum(dict["left"_k].extent(0));
    for (std::size_t i = 0; i < sum.size(); ++i) sum(i) = dict["left"_k](i) + (*dict["right"_k])(i) + map.at(3)[i];
    return sum;
  };
  const Pipeline net{PipelineOptions{.micro_batches = 4}, stage(make, host_devices(2)), stage(add, host_devices(3))};
  Tensor<double, 1> x(10);
  for (std::size_t i = 0; i < 10; ++i) x(i) = static_cast<double>(i);
  const auto y = net(x);
  REQUIRE(y.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(y(i) == 3 * x(i));
}

TEST_CASE("the first stage takes what a ParallelModel takes") {
  const auto fill = [](Rows x, const Tensor<double, 1>& weight, fanout::RowRange rows, View<double, 1> count) {
    Tensor<double, 1> y(x.extent(0));
    for (std::size_t i = 0; i < y.size(); ++i) {
      y(i) = weight(0) + static_cast<double>(rows.first + i);
      count(i) += 1;
    }
    return y;
  };
  const Pipeline net{stage(fill, host_devices(2)), stage(copies, host_devices(1))};
  Tensor<double, 1> weight(3);
  weight(0) = 100;
  Tensor<double, 1> count(40);
  const auto y = net(batch(40), broadcast(weight), Range(40), inout(count));
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(y(i) == 100 + static_cast<double>(i));
    CHECK(count(i) == 1);
  }
  CHECK_THROWS_AS(net(batch(40), broadcast(weight), Range(39), inout(count)), fanout::ShapeMismatch);
}

TEST_CASE("the last stage returns arrays on other axes, structs with reductions, and nothing") {
  const auto transposed = [](View<const double, 1> x) {
    Tensor<double, 2> y({2, x.extent(0)});
    for (std::size_t i = 0; i < x.extent(0); ++i) y(0, i) = y(1, i) = x(i);
    return fanout::concat<1>(std::move(y));
  };
  Tensor<double, 1> x(10);
  for (std::size_t i = 0; i < 10; ++i) x(i) = static_cast<double>(i);
  const Pipeline wide{stage(copies, host_devices(1)), stage(transposed, host_devices(2))};
  const auto y = wide(x);
  REQUIRE(y.extents() == fanout::Extents<2>{2, 10});
  for (std::size_t i = 0; i < 10; ++i) CHECK(y(1, i) == x(i));

  struct Totals {
    fanout::Mean<double> mean;
    fanout::Sum<int> rows;
    fanout::First<double> first;
    Tensor<double, 1> all;
  };
  const auto totals = [](View<const double, 1> part) {
    double sum = 0;
    for (const double value : part) sum += value;
    return Totals{sum / static_cast<double>(part.size()), static_cast<int>(part.size()), part(0),
                  Tensor<double, 1>(part)};
  };
  const Pipeline counts{PipelineOptions{.micro_batches = 3}, stage(copies, host_devices(1)),
                        stage(totals, host_devices(2))};
  const Totals found = counts(x);
  CHECK(found.mean == doctest::Approx(4.5));
  CHECK(found.rows == 10);
  CHECK(found.first == 0);
  CHECK(found.all.size() == 10);

  std::atomic<int> rows{0};
  const Pipeline nothing{
      stage(copies, host_devices(1)),
      stage([&rows](View<const double, 1> part) { rows += static_cast<int>(part.size()); }, host_devices(1))};
  nothing(x);
  CHECK(rows == 10);
}

TEST_CASE("reductions of arrays are combined over the micro-batches in order") {
  const auto sums = [](Rows x) {
    Tensor<double, 1> sum(x.extent(1));
    Tensor<double, 1> mean(x.extent(1));
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t i = 0; i < x.extent(1); ++i) sum(i) += x(row, i);
    }
    for (std::size_t i = 0; i < x.extent(1); ++i) mean(i) = sum(i) / static_cast<double>(x.extent(0));
    return std::pair{psum(std::move(sum)), pmean(std::move(mean))};
  };
  const auto keep = [](Rows x) { return Tensor<double, 2>(x); };
  const auto x = batch(31);
  const Pipeline net{PipelineOptions{.micro_batches = 4}, stage(keep, host_devices(1)), stage(sums, host_devices(2))};
  const auto [sum, mean] = net(x);

  // The same micro-batches, one after the other.
  const ParallelModel model{sums, host_devices(2)};
  Tensor<double, 1> wanted;
  for (const auto& part : fanout::EvenSplit{}(31, 4)) {
    const auto piece = model(Rows(x).rows(part.rows)).first;
    if (part.rows.first == 0) {
      wanted = piece;
    } else {
      for (std::size_t i = 0; i < 3; ++i) wanted(i) += piece(i);
    }
  }
  CHECK(same(sum, wanted));
  for (std::size_t i = 0; i < 3; ++i) CHECK(mean(i) == doctest::Approx(sum(i) / 31));
}

TEST_CASE("means are those of all rows, however many shards a micro-batch has") {
  const auto keep = [](Rows x) { return Tensor<double, 2>(x); };
  const auto mean = [](Rows x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x.data()[i];
    Tensor<double, 1> in_array(1);
    in_array(0) = sum / static_cast<double>(x.size());
    return std::pair{pmean(sum / static_cast<double>(x.size())), pmean(std::move(in_array))};
  };
  for (const int devices : {1, 2}) {
    for (const std::size_t micro_batches : std::vector<std::size_t>{1, 4, 31}) {
      const Pipeline net{PipelineOptions{.micro_batches = micro_batches}, stage(keep, host_devices(1)),
                         stage(mean, host_devices(devices))};
      const auto [number, array] = net(batch(31));
      CHECK(number == doctest::Approx(4.6));
      CHECK(array(0) == doctest::Approx(4.6));
    }
  }
}

TEST_CASE("threads, pipelines on the same devices, and pipelines inside of each other") {
  const Pipeline net{stage(Noisy{}, host_devices(2)), stage(WithSums{}, host_devices(1)),
                     stage(Last{}, host_devices(2))};
  const Pipeline other{stage(WithSums{}, host_devices(2)), stage(Last{}, host_devices(2))};
  const auto x = batch(40);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 50; ++call) {
        if (std::get<3>(net(x)) == 40 && std::get<3>(other(x)) == 40) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);

  const auto inner = [&net](Context auto& ctx, Rows part) {
    auto y = output<double>(ctx);
    const auto all = net(part);
    for (std::size_t row = 0; row < part.extent(0); ++row) y(row) = std::get<0>(all)(row, 0);
    return y;
  };
  const ParallelModel around{inner, host_devices(2)};
  const Pipeline pipeline_around{stage(inner, host_devices(2)), stage(copies, host_devices(1))};
  for (int call = 0; call < 20; ++call) {
    CHECK(around(x).size() == 40);
    CHECK(pipeline_around(x).size() == 40);
  }
}

TEST_CASE("an exception in a stage names the stage, the micro-batch and the rows, and the pipeline works afterwards") {
  std::atomic<bool> fails{true};
  const auto bad = [&fails](Context auto& ctx, Rows x) {
    if (fails && ctx.rows().first <= 17 && 17 < ctx.rows().last) throw std::runtime_error("row 17");
    auto y = output<double>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i];
    return y;
  };
  const Pipeline net{PipelineOptions{.micro_batches = 8}, stage(Noisy{}, host_devices(2)), stage(bad, host_devices(2)),
                     stage(Noisy{}, host_devices(1))};
  const auto x = batch(40);
  try {
    net(x);
    FAIL("it did not throw");
  } catch (const fanout::StageError& error) {
    CHECK(error.stage() == 1);
    CHECK(error.micro_batch() == 3);
    CHECK(error.rows() == fanout::RowRange{15, 20});
    REQUIRE(error.get_if<fanout::ReplicaError>() != nullptr);
    CHECK(error.get_if<fanout::ReplicaError>()->failures().front().rows == fanout::RowRange{15, 18});
    CHECK_THROWS_AS(error.rethrow(), fanout::ReplicaError);
    CHECK(says(error.what(), "stage 1 failed on micro-batch 3, rows [15, 20)"));
    CHECK(says(error.what(), "row 17"));
  }
  fails = false;
  CHECK(net(x).extent(0) == 40);

  const Pipeline odd{stage([](Rows part) { return Tensor<double, 1>(part.extent(0) + 1); }, host_devices(1)),
                     stage(copies, host_devices(1))};
  CHECK(says(message_of<fanout::StageError>([&] { odd(x); }),
             "the stage before returned another number of rows than it took: expected 5 rows, found 6"));
}

TEST_CASE("results of micro-batches that do not fit together") {
  const auto odd = [](Context auto& ctx, Rows x) {
    return Tensor<double, 2>({x.extent(0), ctx.rows().last == 40 ? std::size_t{2} : std::size_t{3}});
  };
  const Pipeline net{PipelineOptions{.micro_batches = 8}, stage(Noisy{}, host_devices(1)), stage(odd, host_devices(1))};
  const std::string text = message_of<fanout::ShapeMismatch>([&] { net(batch(40)); });
  CHECK(says(text, "trailing extents of [5, 3]"));
  CHECK(says(text, "found [5, 2]"));
  CHECK(says(text, "rows [35, 40)"));
}

TEST_CASE("models with ranks or collectives are no stages") {
  const Pipeline meets{stage(
                           [](Context auto& ctx, Rows x) {
                             ctx.communicator().barrier();
                             return Tensor<double, 2>(x);
                           },
                           host_devices(2)),
                       stage(Noisy{}, host_devices(1))};
  CHECK(says(message_of<fanout::StageError>([&] { meets(batch(4)); }), "a model with collectives cannot be a stage"));
}

TEST_CASE("a stage is a ParallelModel, which can be updated between calls") {
  struct Scale {
    double by = 2;
    auto forward(View<const double, 1> x) const {
      Tensor<double, 1> y(x);
      for (double& value : y) value *= by;
      return y;
    }
  };
  Pipeline net{stage(Scale{}, host_devices(2)), stage(Scale{}, host_devices(1))};
  Tensor<double, 1> x(4);
  x(3) = 1;
  CHECK(net(x)(3) == 4);
  net.stage<1>().update([](Scale& scale) { scale.by = 10; });
  CHECK(net(x)(3) == 20);
  CHECK(std::as_const(net).stage<0>().model().by == 2);
}

TEST_CASE("values under keys skip stages") {
  using Column = Tensor<double, 1>;
  using In = View<const double, 1>;
  const auto split = [](In x) { return fanout::dict("x"_k = Column(x), "skip"_k = Column(x)); };
  const auto twice = [](In x) {
    Column y(x);
    for (double& value : y) value *= 2;
    return fanout::dict("x"_k = std::move(y));
  };
  const auto add = [](In skip, In x) {
    Column y(x);
    for (std::size_t i = 0; i < y.size(); ++i) y(i) += 100 * skip(i);
    return y;
  };
  const Pipeline net{PipelineOptions{.micro_batches = 4}, stage(split, host_devices(2)),
                     stage(twice, host_devices(1)).takes("x"_k), stage(twice, host_devices(1)).takes("x"_k),
                     stage(add, host_devices(2)).takes("skip"_k, "x"_k)};
  Column x(10);
  for (std::size_t i = 0; i < 10; ++i) x(i) = static_cast<double>(i);
  const auto y = net(x);
  for (std::size_t i = 0; i < 10; ++i) CHECK(y(i) == 104 * x(i));
}

TEST_CASE("after the deadline, steps are left out, and the pipeline works afterwards") {
  std::atomic<int> calls{0};
  std::atomic<bool> slow{true};
  std::atomic<int> stopped{0};
  const auto waits = [&](fanout::Context auto& ctx, View<const double, 1> x) {
    ++calls;
    while (slow && !ctx.stop_requested()) std::this_thread::yield();
    stopped += ctx.stop_requested() ? 1 : 0;
    return Tensor<double, 1>(x);
  };
  const auto pass = [](View<const double, 1> x) { return Tensor<double, 1>(x); };
  const Pipeline net{PipelineOptions{.micro_batches = 8, .deadline = std::chrono::milliseconds(20)},
                     stage(waits, host_devices(1)), stage(pass, host_devices(2))};
  const Tensor<double, 1> x(8);
  for (const bool asynchronous : {false, true}) {
    calls = 0, stopped = 0;
    try {
      asynchronous ? net.async(x).get() : net(x);
      FAIL("the call was in time");
    } catch (const fanout::StageError& error) {
      CHECK(error.stage() == 0);
      CHECK(error.micro_batch() == 0);
      REQUIRE(error.get_if<fanout::Timeout>() != nullptr);
      CHECK(std::string(error.what()).find("deadline of 20 ms") != std::string::npos);
    }
    CHECK(calls == 1);
    CHECK(stopped == 1);
  }
  slow = false;
  CHECK(net(x).size() == 8);
  CHECK_THROWS_AS(Pipeline(PipelineOptions{.deadline = std::chrono::milliseconds(-1)}, stage(pass, host_devices(1))),
                  fanout::InvalidArgument);
}
