// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
//
// Models with slices as stages: each of their devices takes all rows of a micro-batch.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <support/message_of.hpp>
#include <support/simulated.hpp>

#include "stages/sliced_layers.hpp"

namespace {

using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::Pipeline;
using fanout::Slice;
using fanout::stage;
using fanout_test::Deep;
using fanout_test::elements;
using fanout_test::fractions;
using fanout_test::Matrix;
using fanout_test::message_of;
using fanout_test::on_devices;
using fanout_test::product;
using fanout_test::Rows;
using fanout_test::says;
using fanout_test::simulated;
using fanout_test::Wide;
using namespace fanout::literals;

struct Doubled {
  Matrix forward(Rows x) const {
    Matrix y(x);
    for (double& element : y) element *= 2;
    return y;
  }
};

struct Keyed {
  Slice<Matrix, 0> weight;
  auto forward(Context auto& ctx, Rows y, Rows skipped) const {
    const Matrix all = product(y, weight.part(ctx));
    const Matrix more = product(skipped, weight.part(ctx));
    Matrix sum(all);
    for (std::size_t i = 0; i < sum.size(); ++i) sum.data()[i] += more.data()[i];
    return dict("y"_k = fanout::concat<1>(std::move(sum)), "rows"_k = fanout::first(Matrix(y)));
  }
};

struct Scaled {
  auto forward(Rows x, double factor) const {
    Matrix y(x);
    for (double& element : y) element *= factor;
    return dict("y"_k = std::move(y), "x"_k = Matrix(x));
  }
};

struct Halves {
  Matrix forward(Rows x) const { return Matrix(x.rows({0, x.extent(0) / 2})); }
};

struct EachItsRows {
  Slice<Matrix, 0> weight;
  Matrix forward(Context auto& ctx, Rows x) const { return product(x, weight.part(ctx)); }
};

Matrix doubled(const Matrix& x) { return Doubled{}.forward(x.view()); }

void check_close(const Matrix& found, const Matrix& wanted) {
  REQUIRE(found.extents() == wanted.extents());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found.data()[i] == doctest::Approx(wanted.data()[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("a model with slices may be the first stage, one in the middle, or the last") {
  const Matrix x = fractions(7, 6);
  const Matrix weight = fractions(5, 6);
  const Matrix square = fractions(6, 6);
  const Matrix twice = doubled(x);
  on_devices([&](const auto& devices) {
    for (const std::size_t batches : std::vector<std::size_t>{1, 2, 7, 9}) {
      CAPTURE(batches);
      const fanout::PipelineOptions options{.micro_batches = batches};
      const Pipeline first{options, stage(Wide{weight}, devices), stage(Doubled{}, host_devices(2))};
      CHECK(elements(first(x)) == elements(doubled(product(x, weight))));
      const Pipeline middle{options, stage(Doubled{}, host_devices(2)), stage(Wide{square}, devices),
                            stage(Doubled{}, host_devices(1))};
      CHECK(elements(middle(x)) == elements(doubled(product(twice, square))));
      CHECK(elements(middle.async(x).get()) == elements(middle(x)));
      const Pipeline last{options, stage(Doubled{}, host_devices(2)), stage(Wide{weight}, devices)};
      CHECK(elements(last(x)) == elements(product(twice, weight)));
      const Pipeline sums{options, stage(Deep{square}, devices), stage(Deep{weight}, devices)};
      const Matrix inner = product(x, square);
      check_close(sums(x), product(inner, weight));
    }
  });
}

TEST_CASE("a stage with slices takes values under keys, and arguments besides arrays") {
  const Matrix x = fractions(5, 3);
  const Matrix weight = fractions(4, 3);
  const Pipeline net{fanout::PipelineOptions{.micro_batches = 2}, stage(Scaled{}, host_devices(2)),
                     stage(Keyed{weight}, host_devices(3)).takes("y"_k, "x"_k)};
  const auto result = net(x, 2.0);
  Matrix three(x);
  for (double& element : three) element *= 3;
  check_close(result["y"_k], product(three, weight));
  CHECK(elements(result["rows"_k]) == elements(doubled(x)));
}

TEST_CASE("a device of a stage with slices holds no more than its part, and update() sees the whole") {
  // 64 x 64 numbers are 32 KiB, and each device has 20 KiB.
  const Matrix x = fractions(2, 64);
  Pipeline net{stage(Wide{fractions(64, 64)}, simulated(2, {.memory = 20 << 10})), stage(Doubled{}, host_devices(1))};
  CHECK(elements(net(x)) == elements(doubled(product(x, fractions(64, 64)))));
  net.stage<0>().update([](Wide& wide) { wide.weight.whole() = fractions(2, 64); });
  CHECK(elements(net(x)) == elements(doubled(product(x, fractions(2, 64)))));
}

TEST_CASE("rows that a stage with slices does not take or return are an error with the stage's name") {
  const Matrix x = fractions(4, 3);
  const fanout::PipelineOptions two{.micro_batches = 2};
  const Pipeline too_few{two, stage(Halves{}, host_devices(1)), stage(Wide{fractions(4, 3)}, host_devices(2))};
  CHECK(says(message_of<fanout::StageError>([&] { too_few(x); }), "stage 1",
             "the stage before returned another number of rows than it took: expected 2 rows, found 1"));
  const Pipeline twice{two, stage(EachItsRows{fractions(4, 3)}, host_devices(2)), stage(Doubled{}, host_devices(1))};
  CHECK(says(message_of<fanout::StageError>([&] { twice(x); }), "stage 1", "expected 2 rows, found 4"));
  const Pipeline good{two, stage(Wide{fractions(4, 3)}, host_devices(2)), stage(Doubled{}, host_devices(1))};
  CHECK(elements(good(x)) == elements(doubled(product(x, fractions(4, 3)))));
}
