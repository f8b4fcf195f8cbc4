// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace fanout_test {

/// What each `forward` does first, and what it does with its rows: the program that includes this says what.
void enter_body(std::size_t shards);
void fill(fanout::View<const float, 1> x, fanout::View<float, 1> y);

struct BothHalves {
  fanout::Tensor<float, 1> left;
  fanout::Tensor<float, 1> right;
};

/// A model that may write itself, so that each device has a replica of its own, with weights of its own.
struct CountsItsCalls {
  fanout::Tensor<float, 1> weight{10'000};
  int calls = 0;
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) {
    enter_body(ctx.size());
    ++calls;
    auto y = fanout::output<float>(ctx);
    fill(x, y);
    return y;
  }
};

/// Calls `visit(name, call)` for each kind of call that allocates nothing, copies nothing and takes no lock once it has
/// been made a few times; `call()` makes one, on arrays of `rows` floats.
template <class Devices, class Visit>
void each_kind(const Devices& devices, std::size_t rows, const Visit& visit) {
  using fanout::Context;
  using fanout::dict;
  using fanout::output;
  using fanout::ParallelModel;
  using X = fanout::View<const float, 1>;
  using namespace fanout::literals;
  const fanout::Tensor<float, 1> x(rows);

  // A model for each: forward returns what `result(ctx, y)` makes of an output.
  const auto of = [&](const char* name, const auto& result) {
    const ParallelModel model{[&result](Context auto& ctx, X part) {
                                enter_body(ctx.size());
                                auto y = output<float>(ctx);
                                fill(part, y);
                                return result(ctx, y);
                              },
                              devices};
    visit(name, [&] { static_cast<void>(model(x)); });
  };

  const ParallelModel nothing{[](Context auto& ctx, X) { enter_body(ctx.size()); }, devices};
  visit("void", [&] { nothing(x); });

  const ParallelModel number{[](Context auto& ctx, X part) {
                               enter_body(ctx.size());
                               return part.size();
                             },
                             devices};
  visit("a scalar", [&] { static_cast<void>(number(x)); });

  const ParallelModel sum{[](Context auto& ctx, X part) {
                            enter_body(ctx.size());
                            return fanout::psum(part.size());
                          },
                          devices};
  visit("psum of a scalar", [&] { static_cast<void>(sum(x)); });

  of("Output", [](auto&, auto y) { return y; });
  of("tuple", [](auto& ctx, auto y) { return std::tuple{y, output<float>(ctx), y.size()}; });
  of("pair", [](auto&, auto y) { return std::pair{y, fanout::psum(y.size())}; });
  of("std::array", [](auto& ctx, auto y) { return std::array{y, output<float>(ctx)}; });
  of("dict", [](auto&, auto y) { return dict("y"_k = y, "rows"_k = y.size()); });
  of("tuple and dicts", [](auto& ctx, auto y) {
    return std::tuple{y, dict("image"_k = dict("noise"_k = output<float>(ctx)), "rows"_k = fanout::pmax(y.size()))};
  });
  of("struct of tensors", [](auto& ctx, auto y) { return BothHalves{y, output<float>(ctx)}; });
  of("Output, with scratch", [](auto& ctx, auto y) {
    static_cast<void>(fanout::empty<float>(ctx, y.size()));
    return y;
  });
  of("psum of a number beside Output", [](auto&, auto y) { return std::tuple{fanout::psum(1.0), y}; });

  const ParallelModel model{[](Context auto& ctx, X part) {
                              enter_body(ctx.size());
                              auto y = output<float>(ctx);
                              fill(part, y);
                              return y;
                            },
                            devices};
  fanout::Tensor<float, 1> kept(rows);
  visit("Output, the last one kept meanwhile", [&] { kept = model(x); });
  const fanout::View<const float, 1> view(x);
  visit("Output, of a view", [&] { static_cast<void>(model(view)); });
  fanout::Tensor<float, 1> own(rows);
  auto into = model.into(own);
  visit("into a tensor", [&] { into(x); });

  const ParallelModel nested{[](Context auto& ctx, const std::pair<X, X>& parts, X common, fanout::View<float, 1> y) {
                               enter_body(ctx.size());
                               fill(parts.second, y);
                               return fanout::psum(common.size());
                             },
                             devices};
  visit("pair, broadcast and inout in", [&] {
    static_cast<void>(nested(std::pair{view, view}, fanout::broadcast(x), fanout::inout(own)));
  });

  const std::vector<float> numbers(rows);
  const ParallelModel mixed{
      [](Context auto& ctx, std::span<const float> part, const auto& both, fanout::RowRange range, int factor) {
        enter_body(ctx.size());
        return fanout::psum(part.size() + both["view"_k].size() + range.size() + static_cast<std::size_t>(factor));
      },
      devices};
  visit("std::vector, dict, Range and number in",
        [&] { static_cast<void>(mixed(numbers, dict("view"_k = view), fanout::Range{rows}, 1)); });

  const ParallelModel replicas{CountsItsCalls{}, devices};
  visit("Output, of unchanged replicas", [&] { static_cast<void>(replicas(x)); });
}

}  // namespace fanout_test
