// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

// Each returns which of its functions was called.
enum class Called { forward, forward_with_context, call, call_with_context };

struct Forward {
  Called forward(View<const int, 1>) const { return Called::forward; }
};
struct ForwardWithContext {
  Called forward(Context auto&, View<const int, 1>) const { return Called::forward_with_context; }
};
struct Call {
  Called operator()(View<const int, 1>) const { return Called::call; }
};
struct CallWithContext {
  Called operator()(Context auto&, View<const int, 1>) const { return Called::call_with_context; }
};
struct ForwardAndCall : ForwardWithContext, Call {};
struct BothForms {
  Called forward(View<const int, 1>) const { return Called::forward; }
  Called forward(Context auto&, View<const int, 1>) const { return Called::forward_with_context; }
};
struct Wants : BothForms {
  using BothForms::forward;
  using wants_context = void;
};
struct WantsInCall : Call {
  using wants_context = void;
  using Call::operator();
  Called operator()(Context auto&, View<const int, 1>) const { return Called::call_with_context; }
};
struct WantsButCannot : Forward {
  using wants_context = void;
};
struct AnyNumber {
  using wants_context = void;
  template <class... A>
  Called forward(A&&...) const {
    return sizeof...(A) == 2 ? Called::forward_with_context : Called::forward;
  }
};
struct NotConst {
  Called forward(View<const int, 1>) { return Called::forward; }
};

struct ConstCallBesideForward : Call {
  Called forward(View<const int, 1>) { return Called::forward; }
};

template <class M>
Called called(M model) {
  ParallelModel parallel{model, host_devices(1)};
  return parallel(Tensor<int, 1>(1))[0];
}

struct Pod {};
using OneArgument = fanout::ShardContext<fanout::HostDevice>;

}  // namespace

TEST_CASE("a model that takes any arguments is called without a context") {
  // Its body would not compile with a context, and its return type is deduced: to try is to fail.
  const ParallelModel model{[](const auto&... x) { return (x.extent(0) + ...); }, host_devices(1)};
  CHECK(model(Tensor<int, 1>(4), Tensor<int, 1>(4))[0] == 8);
}

TEST_CASE("forward takes precedence over a call operator, and plain arguments over a context") {
  CHECK(called(Forward{}) == Called::forward);
  CHECK(called(ForwardWithContext{}) == Called::forward_with_context);
  CHECK(called(Call{}) == Called::call);
  CHECK(called(CallWithContext{}) == Called::call_with_context);
  CHECK(called(ForwardAndCall{}) == Called::forward_with_context);
  CHECK(called(BothForms{}) == Called::forward);
  CHECK(called(NotConst{}) == Called::forward);
  CHECK(called(ConstCallBesideForward{}) == Called::forward);
}

TEST_CASE("a model with wants_context gets the context if it can take it") {
  CHECK(called(Wants{}) == Called::forward_with_context);
  CHECK(called(WantsInCall{}) == Called::call_with_context);
  CHECK(called(WantsButCannot{}) == Called::forward);
  CHECK(called(AnyNumber{}) == Called::forward_with_context);
}

TEST_CASE("lambdas are models, generic ones too") {
  CHECK(called([](View<const int, 1>) { return Called::call; }) == Called::call);
  CHECK(called([](Context auto&, View<const int, 1>) { return Called::call_with_context; }) ==
        Called::call_with_context);
  CHECK(called([](const auto& x) { return x.extent(0) == 1 ? Called::call : Called::forward; }) == Called::call);
  CHECK(called([](auto& ctx, auto x) {
          return ctx.size() == x.extent(0) ? Called::call_with_context : Called::forward;
        }) == Called::call_with_context);
}

TEST_CASE("the concepts tell which models can run, and which can run const") {
  using fanout::ConstForward;
  using fanout::Forwardable;
  static_assert(ConstForward<Forward, OneArgument, View<const int, 1>>);
  static_assert(ConstForward<CallWithContext, OneArgument, View<const int, 1>>);
  static_assert(!ConstForward<NotConst, OneArgument, View<const int, 1>>);
  static_assert(Forwardable<NotConst, OneArgument, View<const int, 1>>);
  static_assert(!Forwardable<Forward, OneArgument, View<const float, 1>>);
  static_assert(!Forwardable<Forward, OneArgument>);
  static_assert(!Forwardable<Pod, OneArgument, int>);
  CHECK(Forwardable<Forward, OneArgument, View<const int, 1>>);
}

TEST_CASE("a model that returns a reference or an rvalue reference gives its value") {
  struct References {
    std::vector<int> numbers{4, 5};
    std::vector<int>& forward(int) { return numbers; }
  };
  ParallelModel model{References{}, host_devices(1)};
  CHECK(model(0) == std::vector{4, 5});
  CHECK(model(0) == std::vector{4, 5});  // not moved from
}

TEST_CASE("numbers convert to forward's parameters without a warning") {
  const ParallelModel scale{
      [](View<const float, 1> x, std::size_t n, float factor) { return factor * static_cast<float>(n) * x[0]; },
      host_devices(1)};
  Tensor<float, 1> one(1);
  one[0] = 1;
  CHECK(scale(one, 4, 2.5)[0] == 10.0F);  // warnings are errors in the test builds
}
