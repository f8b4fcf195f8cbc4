// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/gathers.hpp"
#include "support/message_of.hpp"
#include "support/struct_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::gathered_t;
using fanout::host_devices;
using fanout::Mean;
using fanout::ParallelModel;
using fanout::PerShard;
using fanout::Sum;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::Gathers;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::StructOf;
using fanout_test::values;

namespace fields_test {  // with a name, so that compilers do not look for uses of the fields() in it

// [fields]
class Detections {
  fanout::Tensor<int, 1> boxes_;
  std::vector<int> scores_;

  friend constexpr auto fields(const Detections*) {
    return fanout::dict("boxes"_k = &Detections::boxes_, "scores"_k = &Detections::scores_);
  }

 public:
  Detections() = default;
  Detections(fanout::Tensor<int, 1> boxes, std::vector<int> scores)
      : boxes_(std::move(boxes)), scores_(std::move(scores)) {}
  const fanout::Tensor<int, 1>& boxes() const { return boxes_; }
  const std::vector<int>& scores() const { return scores_; }
};
// [/fields]

}  // namespace fields_test

using fields_test::Detections;

namespace {

const std::vector<int> to_five{0, 1, 2, 3, 4};

struct Image {
  Tensor<int, 1> rows;
  std::vector<int> firsts;
};
struct Extras {
  Image image;
  Mean<double> mean;
};
struct Result {
  Tensor<int, 1> rows;
  Extras extras;
  Sum<int> sum;
  PerShard<std::string> who;
};

/// Structs three levels down, in everything and around everything.
struct Everything {
  std::tuple<Image, std::array<Image, 2>> tuple;
  std::map<std::string, Image> map;
  std::vector<Extras> vector;
  std::optional<Image> optional;
  decltype(dict("image"_k = Image())) entries;
};

template <class X>
constexpr bool gathers_to_itself = std::is_same_v<gathered_t<X>, X>&& Gathers<X>;

static_assert(gathers_to_itself<Result>);
static_assert(gathers_to_itself<Everything>);
static_assert(gathers_to_itself<Detections>);
static_assert(gathers_to_itself<StructOf<int, 0>>);
static_assert(gathers_to_itself<StructOf<const Tensor<int, 1>, 2>>);

static_assert(!Gathers<StructOf<float, 1>>);
static_assert(!Gathers<StructOf<std::string, 1>>);
static_assert(!Gathers<StructOf<View<const int, 1>, 1>>);
static_assert(!Gathers<StructOf<std::span<const int>, 1>>, "it would show a vector that is gone");
static_assert(!Gathers<StructOf<fanout::Output<int, 1>, 1>>);
static_assert(!Gathers<StructOf<Tensor<int, 1>&, 1>>);
static_assert(!Gathers<StructOf<const Tensor<int, 1>&, 1>>);
static_assert(!Gathers<StructOf<StructOf<float, 1>, 1>>);
static_assert(!Gathers<StructOf<Tensor<int, 1>, 33>>);

Image image_of(View<const int, 1> x) { return {Tensor<int, 1>(x), {x[0]}}; }

template <std::size_t N, std::size_t... I>
auto gather_members(std::index_sequence<I...>) {
  ParallelModel model{[]([[maybe_unused]] View<const int, 1> x) {
                        return StructOf<std::vector<int>, N>{std::vector<int>{static_cast<int>(I), x[0]}...};
                      },
                      host_devices(2)};
  return model(count_to(5));
}

}  // namespace

TEST_CASE("a struct is gathered to itself, member by member, three levels down") {
  const auto forward = [](Context auto& ctx, View<const int, 1> x) {
    return Result{Tensor<int, 1>(x), {image_of(x), static_cast<double>(x[0])}, x[0], to_string(ctx.device().id())};
  };
  for (int devices = 1; devices <= 5; ++devices) {
    ParallelModel model{forward, host_devices(devices)};
    const Result result = model(count_to(5));
    CHECK(values(result.rows) == to_five);
    CHECK(values(result.extras.image.rows) == to_five);
    CHECK(result.extras.image.firsts.size() == static_cast<std::size_t>(devices));
    CHECK(result.who.size() == static_cast<std::size_t>(devices));
    CHECK(result.who[result.who.size() - 1] == "host:" + std::to_string(devices - 1));
  }
  ParallelModel model{forward, host_devices(2)};
  const Result result = model(count_to(5));
  CHECK(result.extras.image.firsts == std::vector{0, 3});
  CHECK(result.extras.mean == doctest::Approx(3 * 0.4));
  CHECK(result.sum == 3);
}

TEST_CASE("structs of 0, 1 and 32 members are gathered") {
  static_cast<void>(gather_members<0>(std::make_index_sequence<0>()));
  CHECK(gather_members<1>(std::make_index_sequence<1>()).m1 == std::vector{0, 0, 0, 3});
  const auto many = gather_members<32>(std::make_index_sequence<32>());
  CHECK(many.m1 == std::vector{0, 0, 0, 3});
  CHECK(many.m17 == std::vector{16, 0, 16, 3});
  CHECK(many.m32 == std::vector{31, 0, 31, 3});
}

TEST_CASE("structs stand in containers, and containers in structs") {
  ParallelModel model{[](View<const int, 1> x) {
                        const Image image = image_of(x);
                        return std::pair{Everything{{image, {image, image}},
                                                    {{"key", image}},
                                                    std::vector<Extras>(2, Extras{image, 1.0}),
                                                    image,
                                                    dict("image"_k = image)},
                                         dict("maps"_k = std::map<int, Image>{{4, image}})};
                      },
                      host_devices(2)};
  const auto [all, rest] = model(count_to(5));
  CHECK(values(std::get<1>(all.tuple)[1].rows) == to_five);
  CHECK(all.map.at("key").firsts == std::vector{0, 3});
  REQUIRE(all.vector.size() == 2);
  CHECK(values(all.vector[1].image.rows) == to_five);
  CHECK(values(all.optional.value().rows) == to_five);
  CHECK(values(all.entries["image"_k].rows) == to_five);
  CHECK(values(rest["maps"_k].at(4).rows) == to_five);
}

TEST_CASE("a class that lists its fields is gathered") {
  ParallelModel model{[](View<const int, 1> x) { return Detections(Tensor<int, 1>(x), {x[0]}); }, host_devices(2)};
  const Detections result = model(count_to(5));
  CHECK(values(result.boxes()) == to_five);
  CHECK(result.scores() == std::vector{0, 3});
}

TEST_CASE("outputs in structs are gathered without a copy") {
  const int* first = nullptr;
  const auto forward = [&first](Context auto& ctx, View<const int, 1> x) {
    auto y = fanout::output<int>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i];
    if (ctx.rank() == 0) first = y.data();
    return Image{y, {}};
  };
  for (int devices = 1; devices <= 3; ++devices) {
    ParallelModel model{forward, host_devices(devices)};
    const Image result = model(count_to(5));
    CHECK(values(result.rows) == to_five);
    CHECK(result.rows.data() == first);
  }
}

TEST_CASE("psum and pmean of a struct give the same struct") {
  struct Gradients {
    Tensor<double, 2> weight;
    Tensor<double, 1> bias;
    double loss;
  };
  ParallelModel model{[](View<const int, 1> x) {
                        Gradients gradients{Tensor<double, 2>(2, 2), Tensor<double, 1>(2), static_cast<double>(x[0])};
                        gradients.weight(1, 1) = static_cast<double>(x.size());
                        gradients.bias[0] = 1;
                        return std::tuple{fanout::psum(gradients), fanout::pmean(gradients), fanout::psum(x[0])};
                      },
                      host_devices(2)};
  const auto [sum, mean, number] = model(count_to(5));
  static_assert(std::is_same_v<decltype(sum), const Gradients>);
  static_assert(std::is_same_v<decltype(mean), const Gradients>);
  CHECK(sum.weight(1, 1) == 5);
  CHECK(sum.bias[0] == 2);
  CHECK(sum.loss == 3);
  CHECK(mean.loss == doctest::Approx(3 * 0.4));
  CHECK(number == 3);
}

TEST_CASE("errors in structs name the members") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                        Extras extras{};
                        extras.image.rows = Tensor<int, 1>(1);
                        Everything everything{};
                        if (ctx.rank() == 1) everything.optional.emplace();
                        return std::pair{extras, everything};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5)); }), "output[1].optional", "expected none",
             "shard 1 on host:1, rows [3, 5)"));
  ParallelModel deep{[](Context auto& ctx, View<const int, 1>) {
                       StructOf<StructOf<Tensor<int, 2>, 2>, 2> result{};
                       result.m2.m1 = Tensor<int, 2>(1, ctx.rank() + 1);
                       return std::pair{1, result};
                     },
                     host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { deep(count_to(5)); }), "output[1].m2.m1"));
  ParallelModel listed{[](Context auto& ctx, View<const int, 1>) {
                         return fanout::psum(Detections(Tensor<int, 1>(1), std::vector<int>(1 + ctx.rank())));
                       },
                       host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { listed(count_to(5)); }), "output.scores"));
}

TEST_CASE("structs that the model keeps are copied and left as they are") {
  struct Model {
    Image state{count_to(3), {1, 2}};
    const Image& forward(View<const int, 1>) const { return state; }
  };
  struct Tied {
    Image state{count_to(3), {1, 2}};
    auto forward(View<const int, 1>) const { return std::tie(state); }
  };
  ParallelModel model{Model{}, host_devices(1)};
  ParallelModel tied{Tied{}, host_devices(1)};
  for (int run = 0; run < 2; ++run) {
    CHECK(values(model(count_to(2)).rows) == std::vector{0, 1, 2});
    CHECK(std::get<0>(tied(count_to(2))).firsts == std::vector{1, 2});
  }
}

TEST_CASE("a model of models gathers structs as one model does") {
  const auto forward = [](View<const int, 1> x) {
    return Result{Tensor<int, 1>(x), {image_of(x), 1.0}, static_cast<int>(x.size()), std::string("a")};
  };
  const ParallelModel inner{forward, host_devices(2)};
  ParallelModel outer{[&inner](View<const int, 1> x) { return inner(x); }, host_devices(2)};
  const Result result = outer(count_to(8));
  CHECK(values(result.rows) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(result.extras.mean == 1.0);
  CHECK(result.sum == 8);
  CHECK(result.who.size() == 4);
}
