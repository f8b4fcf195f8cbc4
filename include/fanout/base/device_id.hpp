// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// The name of a kind of device, such as `host` or `cuda`: one to eight characters in one 64-bit word. It compares by
/// value, also between shared libraries.
class DeviceKind {
 public:
  template <std::size_t N>
  consteval DeviceKind(const char (&name)[N]) {  // NOLINT(google-explicit-constructor): DeviceId{"host", 0}
    static_assert(N >= 2 && N <= 9, "fanout: the name of a device kind has one to eight characters");
    for (std::size_t i = 0; i + 1 < N && i < 8; ++i) {  // avoids a second error for a longer name
      letters_ |= std::uint64_t{static_cast<unsigned char>(name[i])} << (8 * i);
    }
  }

  friend constexpr bool operator==(const DeviceKind&, const DeviceKind&) = default;  // nvcc derives none from <=>
  friend constexpr auto operator<=>(const DeviceKind&, const DeviceKind&) = default;

  friend FANOUT_INLINE std::string to_string(DeviceKind kind);

 private:
  std::uint64_t letters_ = 0;
};

/// The name of the kind: `host`.
[[gnu::cold]] FANOUT_INLINE std::string to_string(DeviceKind kind);

/// Names a device: its kind, its index among the devices of that kind, and its instance among the devices that share
/// one piece of hardware. All count from 0.
struct DeviceId {
  DeviceKind kind;
  int index = 0;
  int instance = 0;

  friend constexpr bool operator==(const DeviceId&, const DeviceId&) = default;  // nvcc derives none from <=>
  friend constexpr auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

/// `host:0`, `cuda:1`; `cuda:1#2` for instance 2 on the same GPU.
[[gnu::cold]] FANOUT_INLINE std::string to_string(const DeviceId& id);

template <class Char, class Traits>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, const DeviceId& id) {
  return out << to_string(id).c_str();
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/base/device_id.ipp>
#endif
