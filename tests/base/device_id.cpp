// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/base/device_id.hpp>

using fanout::DeviceId;
using fanout::DeviceKind;

namespace {

static_assert(std::is_trivially_copyable_v<DeviceId>, "kernels take views, and views carry one");
static_assert(sizeof(DeviceKind) == sizeof(std::uint64_t));

static_assert(DeviceKind("host") == DeviceKind("host"));
static_assert(DeviceKind("host") != DeviceKind("cuda"));
static_assert(DeviceKind("a") != DeviceKind("aa"), "the length counts too");
static_assert(DeviceKind("ab") != DeviceKind("ba"), "the order of the letters counts too");
static_assert(DeviceId{"host", 1} != DeviceId{"cuda", 1});
static_assert(DeviceId{"cuda", 0} < DeviceId{"cuda", 1});
static_assert(DeviceId{"cuda", 1} >= DeviceId{"cuda", 1});
static_assert(DeviceId{"cuda", 1} != DeviceId{"cuda", 1, 1}, "two devices on one GPU are two devices");
static_assert((DeviceId{"cuda", 5} < DeviceId{"host", 0}) == (DeviceKind("cuda") < DeviceKind("host")),
              "the kind goes before the index");

template <class T>
concept DeviceKindFrom = requires(const T& name) {
  DeviceKind(name);
};
static_assert(!DeviceKindFrom<std::string>, "a kind is named where the program is compiled");
static_assert(!DeviceKindFrom<const char*>);
static_assert(!std::is_default_constructible_v<DeviceId>, "there is no device without a kind");

}  // namespace

TEST_CASE("a device id prints as its kind and its index") {
  CHECK(to_string(DeviceId{"host", 0}) == "host:0");
  CHECK(to_string(DeviceId{"cuda", 12}) == "cuda:12");
  CHECK(to_string(DeviceId{"cuda", -1}) == "cuda:-1");
  CHECK(to_string(DeviceId{"cuda", 1, 2}) == "cuda:1#2");
}

TEST_CASE("a device kind keeps its one to eight letters") {
  CHECK(to_string(DeviceKind("x")) == "x");
  CHECK(to_string(DeviceKind("simulate")) == "simulate");
  CHECK(to_string(DeviceKind("\xc3\xa9")) == "\xc3\xa9");
}

TEST_CASE("a device id prints to streams of any character type") {
  std::ostringstream narrow;
  narrow << std::setw(8) << DeviceId{"cuda", 1} << ';';
  CHECK(narrow.str() == "  cuda:1;");

  std::wostringstream wide;
  wide << DeviceId{"host", 3};
  CHECK((wide.str() == L"host:3"));
}

TEST_CASE("a device id without an index names the first device of its kind") {
  CHECK(DeviceId{"host"} == DeviceId{"host", 0, 0});
}

TEST_CASE("device ids sort by kind, then by index") {
  std::vector<DeviceId> ids{{"host", 1}, {"cuda", 2}, {"host", 0}, {"cuda", 0}, {"cuda", 1}};
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 1; i < ids.size(); ++i) {
    CHECK(ids[i - 1] < ids[i]);
    if (ids[i - 1].kind == ids[i].kind) CHECK(ids[i - 1].index < ids[i].index);
  }
  CHECK(std::is_sorted(ids.begin(), ids.end(), [](const DeviceId& a, const DeviceId& b) { return a.kind < b.kind; }));
}
