// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/adapt/onnxruntime.hpp>
#include <fanout/fanout.hpp>

#include "observe/python.hpp"
#include "support/onnx_file.hpp"

namespace {

using fanout::host_devices;
using fanout::onnx_sessions;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout_test::OnnxValue;
using namespace fanout::literals;

constexpr unsigned as_float = 1;
constexpr unsigned as_int64 = 7;
constexpr std::int64_t unknown = -1;

/// Files of ONNX: products of the rows with 2 x 3 weights, the largest of each row, and their mean.
struct Files {
  fanout_test::TestFolder folder;
  Ort::Env env{ORT_LOGGING_LEVEL_FATAL};

  /// `columns`: how many columns of the scores the file says.
  std::string product(std::int64_t columns = 2) const {
    const std::string path = folder / "product.onnx";
    fanout_test::write_onnx(
        path,
        {{"MatMul", {"rows", "weights"}, {"scores"}},
         {"ArgMax", {"scores"}, {"labels"}, {{"axis", 1}, {"keepdims", 0}}},
         {"ReduceMean", {"scores"}, {"mean"}, {{"keepdims", 0}}}},
        {{"rows", as_float, {unknown, 3}}, {"weights", as_float, {3, 2}}},
        {{"scores", as_float, {unknown, columns}}, {"labels", as_int64, {unknown}}, {"mean", as_float, {}}});
    return path;
  }
  /// y = x + x.
  std::string twice() const {
    const std::string path = folder / "twice.onnx";
    fanout_test::write_onnx(path, {{"Add", {"x", "x"}, {"y"}}}, {{"x", as_float, {unknown}}},
                            {{"y", as_float, {unknown}}});
    return path;
  }
};

struct Outputs {
  Tensor<std::int64_t, 1> labels;  // in another order than in the file
  Tensor<float, 2> scores;
};

const auto rows = fanout::tensor<float>({{1, 0, 0}, {0, 2, 0}, {0, 0, 3}, {1, 1, 1}, {0, 0, 0}});
const auto weights = fanout::tensor<float>({{1, 2}, {4, 3}, {5, 6}});

void check_scores(const Tensor<float, 2>& scores) {
  const float expected[5][2] = {{1, 2}, {8, 6}, {15, 18}, {10, 11}, {0, 0}};
  REQUIRE(scores.extents() == fanout::Extents<2>{5, 2});
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 2; ++j) CHECK(scores(i, j) == expected[i][j]);
  }
}

template <class E = fanout::ReplicaError>
std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("sessions take and give arrays by the names of the file, on any number of devices") {
  const Files files;
  for (const int devices : {1, 2, 3}) {
    const ParallelModel model{onnx_sessions<Outputs>(files.env, files.product()), host_devices(devices)};
    const Outputs all = model(fanout::dict("weights"_k = fanout::broadcast(weights), "rows"_k = rows));
    check_scores(all.scores);
    CHECK(std::vector(all.labels.begin(), all.labels.end()) == std::vector<std::int64_t>{1, 0, 1, 1, 0});
  }
}

TEST_CASE("sessions take arguments and give tuples in the order of the file") {
  const Files files;
  using Two = std::tuple<Tensor<float, 2>, Tensor<std::int64_t, 1>>;
  const ParallelModel model{onnx_sessions<Two>(files.env, files.product()), host_devices(2)};
  const auto [scores, labels] = model(rows, fanout::broadcast(weights));
  check_scores(scores);
  CHECK(labels.size() == 5);
  check_scores(std::get<0>(model(std::tuple(rows, fanout::broadcast(weights)))));
}

TEST_CASE("a file with one input and one output takes and gives one array") {
  const Files files;
  const ParallelModel twice{onnx_sessions<Tensor<float, 1>>(files.env, files.twice()), host_devices(2)};
  const std::vector<float> x{1, 2, 3};
  const Tensor<float, 1> y = twice(x);
  CHECK(std::vector(y.begin(), y.end()) == std::vector<float>{2, 4, 6});
  CHECK(twice(std::vector<float>()).empty());
}

TEST_CASE("an output whose extents the file does not say is copied") {
  const Files files;
  const ParallelModel model{onnx_sessions<Outputs>(files.env, files.product(unknown)), host_devices(2)};
  check_scores(model(rows, fanout::broadcast(weights)).scores);
}

TEST_CASE("an output with other rows than the shard's is refused") {
  const Files files;
  const std::string path = files.folder / "places.onnx";
  fanout_test::write_onnx(path, {{"NonZero", {"x"}, {"y"}}}, {{"x", as_float, {unknown, 3}}},
                          {{"y", as_int64, {unknown, unknown}}});
  const ParallelModel places{onnx_sessions<Tensor<std::int64_t, 2>>(files.env, path), host_devices(1)};
  CHECK(says(failure_of([&] { places(rows); }), "its shard at y: expected 5 rows, found [2, 6]"));
}

TEST_CASE("an output of one number is combined by its rule") {
  struct Means {
    fanout::Mean<float> mean;
  };
  const Files files;
  const ParallelModel model{onnx_sessions<Means>(files.env, files.product()), host_devices(2)};
  const Means means = model(rows, fanout::broadcast(weights));
  CHECK(means.mean.value == doctest::Approx(7.1));  // of 5 rows, not of 2 shards
}

TEST_CASE("the file of the example is made so") {
  const Files files;
  CHECK(fanout_test::text_of(fanout_test::beside(__FILE__, "../../examples/data/scores.onnx")) ==
        fanout_test::text_of(files.product()));
}

TEST_CASE("outputs that are not those of the file are refused when the model is made") {
  const Files files;
  struct Misspelt {
    Tensor<float, 2> score;
  };
  struct OtherType {
    Tensor<double, 2> scores;
  };
  struct OtherRank {
    Tensor<float, 1> scores;
  };
  const auto refusal = [&]<class Out>(std::type_identity<Out>) {
    return failure_of<fanout::FactoryError>([&] {
      ParallelModel{onnx_sessions<Out>(files.env, files.product()), host_devices(2)};
    });
  };
  CHECK(says(refusal(std::type_identity<Misspelt>()),
             "product.onnx: expected scores, labels, mean, found score; name the members of a struct or dict"));
  CHECK(says(refusal(std::type_identity<OtherType>()), "expected F32 with 2 axes, found F64 with 2 axes"));
  CHECK(says(refusal(std::type_identity<OtherRank>()), "expected F32 with 2 axes, found F32 with 1 axis"));
  CHECK(says(refusal(std::type_identity<Tensor<float, 2>>()), "found one array without a name"));
  CHECK(says(failure_of<fanout::FactoryError>([&] {
               ParallelModel{onnx_sessions<Outputs>(files.env, files.folder / "none.onnx"), host_devices(1)};
             }),
             "none.onnx"));
}

TEST_CASE("inputs that are not those of the file are refused, and the model works afterwards") {
  const Files files;
  const ParallelModel model{onnx_sessions<Outputs>(files.env, files.product()), host_devices(2)};
  CHECK(says(failure_of([&] { model(rows); }), "found one array without a name"));
  CHECK(says(failure_of([&] { model(fanout::dict("rows"_k = rows)); }),
             "called without one of its inputs: expected weights"));
  CHECK(says(failure_of([&] { model(fanout::dict("row"_k = rows)); }), "expected rows, weights, found row"));
  CHECK(
      says(failure_of([&] { model(rows, Tensor<double, 2>(5, 2)); }), "weights: expected F32 with 2 axes, found F64"));
  CHECK(says(failure_of([&] { model(rows, fanout::broadcast(Tensor<float, 2>(3, 4))); }), "Ort::Exception"));
  check_scores(model(rows, fanout::broadcast(weights)).scores);
}
