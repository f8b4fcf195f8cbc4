// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/replica/forward_result.hpp>
#include <fanout/replica/replica.hpp>

namespace {

using fanout::HostDevice;
using fanout::Replica;
using fanout::detail::ForwardResult;
using fanout::detail::ForwardResults;
using fanout::detail::PlacedModel;

struct Counts {
  std::string text;
  const std::string& forward(const int&) { return text; }
  int forward(const int&, double&&) const { return 0; }
};
struct Other {
  int forward(const int&, double&&) const { return 0; }
};

// A replica runs a forward that is not const, too, and returns a value where it returns a reference.
static_assert(std::is_same_v<ForwardResult<std::tuple<const int&>, Replica<Counts, HostDevice>>::type, std::string>);
static_assert(
    std::is_same_v<ForwardResult<std::tuple<const int&, double>, PlacedModel<Counts, HostDevice>>::type, int>);

template <class Models>
using result_of = typename ForwardResults<Models, std::tuple<const int&, double>, HostDevice>::type;
static_assert(std::is_same_v<result_of<std::tuple<Counts, const Other&>>, int>);
static_assert(std::is_same_v<result_of<std::array<Other, 2>>, int>);
static_assert(std::is_same_v<result_of<std::vector<Other>>, int>);

}  // namespace
