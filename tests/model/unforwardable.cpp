// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/model/unforwardable.hpp>

#include <span>
#include <string>

#include <fanout/array/view.hpp>

// What the sentences are chosen by; the sentences themselves stand in tests/must_not_compile.

using fanout::View;
namespace detail = fanout::detail;

namespace {

struct Nothing {
  float run(int) const;
};
class Private {
  float forward(int) const;
};
struct Overloaded {
  float forward(int) const;
  float forward(float) const;
};
struct Template {
  float forward(auto) const;
};
struct Data {
  float forward;
};
struct Heir : Overloaded {};
using Lambda = decltype([](auto) { return 1; });

static_assert(detail::NamesNothing<Nothing> && detail::NamesNothing<std::string>);
static_assert(!detail::NamesNothing<Private> && !detail::NamesNothing<Overloaded> && !detail::NamesNothing<Template>);
static_assert(!detail::NamesNothing<Data> && !detail::NamesNothing<Heir> && !detail::NamesNothing<Lambda>);
struct Final final {};
static_assert(!detail::NamesNothing<Final> && !detail::NamesNothing<float (*)(int)>, "cannot be told");

struct Ctx {
  Ctx(const Ctx&) = delete;
  Ctx& operator=(const Ctx&) = delete;
};
struct ByValue {
  float forward(auto ctx, int) const;
};
struct ByReference {
  float forward(auto& ctx, int) const;
};
using LambdaByValue = decltype([](auto, int) { return 1; });

static_assert(detail::ForwardCopiesContext<ByValue, Ctx, int> && !detail::CallCopiesContext<ByValue, Ctx, int>);
static_assert(!detail::ForwardCopiesContext<ByReference, Ctx, int>);
static_assert(detail::CallCopiesContext<LambdaByValue, Ctx, int>);

template <class A, class Written>
concept WrittenAs = std::is_same_v<detail::writable_t<A>, Written>;
static_assert(WrittenAs<View<const float, 2>, View<float, 2>>);
static_assert(WrittenAs<std::span<const float>, std::span<float>>);
static_assert(WrittenAs<const std::string&, std::string>);

}  // namespace
