// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// A field of a model of which each device has its part: a Tensor, cut on one axis as EvenSplit cuts rows. So a layer
/// may be larger than the memory of one device:
///
///     struct Wide {
///       fanout::Slice<fanout::Tensor<float, 2>, 0> weight;  // [outputs, inputs]; each device has some outputs
///
///       auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
///         const auto part = weight.part(ctx);
///         ...
///         return fanout::concat<1>(y);
///       }
///     };
///     auto y = wide(fanout::broadcast(x));
///
/// A call runs on all devices, one shard on each, so arrays in its arguments are broadcast() or sharded. The original
/// has the whole, in host memory. On hosts, which share the original, the part is a view of it. A device with its own
/// memory gets a copy of its part only. update(), save() and load() see the whole. Over ranks, the devices of all ranks
/// have one part each, and each process has the whole.
template <class T, std::size_t Axis>
class Slice {
  static_assert(std::is_void_v<T>, "fanout: a Slice holds a Tensor, as in Slice<fanout::Tensor<float, 2>, 0>");
};

template <class T, std::size_t R, std::size_t Axis>
class Slice<Tensor<T, R>, Axis> {
  static_assert(Axis < R, "fanout: a Slice is cut on an axis of its Tensor; Slice<Tensor<T, 2>, 0> has rows");

 public:
  Slice() = default;
  Slice(Tensor<T, R> whole) : held_(std::move(whole)) {}  // NOLINT(google-explicit-constructor): is a tensor

  /// Copies. In a replica that is being made, copies the part of its device.
  Slice(const Slice& other) { take(other); }
  Slice& operator=(const Slice& other) {
    if (this != &other) take(other);
    return *this;
  }
  Slice(Slice&&) noexcept = default;
  Slice& operator=(Slice&&) noexcept = default;
  ~Slice() = default;

  /// The part of the shard's device, in its memory. Only to be read. Throws Error in a replica that has the part of
  /// another number of devices.
  template <class Ctx>
  auto part(const Ctx& ctx) const {
    if (place_.size == 0) return part_of(held_.view(), range({ctx.rank(), ctx.size()}, held_.extent(Axis)));
    if (!(place_ == detail::SlicePlace{ctx.rank(), ctx.size()})) refuse_place(ctx.rank(), ctx.size());
    return part_of(held_.view(), {0, held_.extent(Axis)});
  }
  /// Which indices of the axis the part has in the whole.
  template <class Ctx>
  RowRange range(const Ctx& ctx) const {
    return range({ctx.rank(), ctx.size()}, place_.size == 0 ? held_.extent(Axis) : whole_extent_);
  }

  /// The whole, in the original. Throws Error in a replica that has a part.
  Tensor<T, R>& whole() {
    check_whole();
    return held_;
  }
  const Tensor<T, R>& whole() const {
    check_whole();
    return held_;
  }

 private:
  static RowRange range(const detail::SlicePlace& place, std::size_t extent) noexcept {
    return detail::EvenParts(extent, place.size)[place.rank];
  }
  static auto part_of(const View<const T, R>& all, RowRange range) {
    if constexpr (Axis == 0) {
      return all.rows(range);
    } else {
      return StridedView<const T, R>(all).slice(Axis, range);
    }
  }

  void take(const Slice& other) {
    const detail::SlicePlace place = detail::slice_place();
    if (place.size == 0 || other.place_.size != 0) {
      held_ = other.held_;
      place_ = other.place_;
      whole_extent_ = other.whole_extent_;
      return;
    }
    if (!(other.held_.space() == host_memory)) refuse_memory(other.held_.space());
    const StridedView<const T, R> part =
        StridedView<const T, R>(other.held_.view()).slice(Axis, range(place, other.held_.extent(Axis)));
    auto packed = Tensor<T, R>::uninitialized(part.extents());
    pack(backend::host_memory_operations, packed.data(), part);
    held_ = std::as_const(packed);  // a copy, which goes to the memory of the device
    place_ = place;
    whole_extent_ = other.held_.extent(Axis);
  }

  void check_whole() const {
    if (place_.size == 0) return;
    throw Error(explain({.what = "the whole of a Slice was asked of a replica, which has its part",
                         .advice = "use part(ctx) in forward, and whole() of the original, in update() or model()"}));
  }
  [[noreturn, gnu::cold]] void refuse_place(std::size_t rank, std::size_t size) const {
    throw Error(explain({.what = "a replica has another part of a Slice than the shard needs",
                         .expected = detail::Text() << "part " << rank << " of " << size,
                         .found = detail::Text() << "part " << place_.rank << " of " << place_.size,
                         .advice = "run a model with slices on all its devices, one shard on each"}));
  }
  [[noreturn, gnu::cold]] static void refuse_memory(const MemorySpace& space) {
    throw DeviceMismatch(explain({.what = "the whole of a Slice is not in host memory",
                                  .expected = to_string(host_memory),
                                  .found = to_string(space),
                                  .advice = "make the model in host memory: each device gets its part"}));
  }

  Tensor<T, R> held_;
  detail::SlicePlace place_;      // of the part; size 0: the whole
  std::size_t whole_extent_ = 0;  // of the axis, if this is a part
};

namespace detail {

template <class T, std::size_t Axis>
inline constexpr bool is_slice<Slice<T, Axis>> = true;

struct SliceFields {
  static constexpr bool in_const = true;
  static constexpr bool in_own = true;
  template <class Declared>
  static constexpr bool is = is_slice<std::remove_cv_t<Declared>>;
};
template <class M>
  requires(holds_field<SliceFields, M>())
inline constexpr bool has_slices<M> = true;

}  // namespace detail
}}  // namespace fanout::v0
