// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

template <class X>
inline constexpr bool is_slice = false;

/// True if a model has a field that is a Slice. <fanout/model/slice.hpp>, without which no model has one, finds it.
template <class M>
inline constexpr bool has_slices = false;

/// The place of a device among those that have the parts of a Slice.
struct SlicePlace {
  std::size_t rank = 0;
  std::size_t size = 0;  ///< 0: no part is meant

  friend bool operator==(const SlicePlace&, const SlicePlace&) = default;
};

/// Where this thread makes a replica of a model with slices.
[[gnu::visibility("default")]] inline SlicePlace& slice_place() noexcept {
  static thread_local SlicePlace place;
  return place;
}

/// While this lives, copies of a Slice are parts of it. Does nothing for a model without slices.
template <class M>
class EnteredSlicePlace {
 public:
  template <class Ctx>
  explicit EnteredSlicePlace(const Ctx&) noexcept {}
};
template <class M>
  requires has_slices<M>
class EnteredSlicePlace<M> {
 public:
  template <class Ctx>
  explicit EnteredSlicePlace(const Ctx& ctx) noexcept
      : before_(std::exchange(slice_place(), SlicePlace{ctx.rank(), ctx.size()})) {}
  EnteredSlicePlace(const EnteredSlicePlace&) = delete;
  EnteredSlicePlace& operator=(const EnteredSlicePlace&) = delete;
  ~EnteredSlicePlace() { slice_place() = before_; }

 private:
  const SlicePlace before_;
};

}}}  // namespace fanout::v0::detail
