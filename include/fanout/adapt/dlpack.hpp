// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#if !defined(DLPACK_VERSION) && !defined(DLPACK_MAJOR_VERSION)  // another library's copy of dlpack.h will do
#include <dlpack/dlpack.h>
#endif

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/leaf.hpp>

// DLPack (https://dmlc.github.io/dlpack): the format in which array libraries exchange arrays without a copy.

namespace fanout { inline namespace v0 {

namespace detail {

#if defined(DLPACK_MAJOR_VERSION) || DLPACK_VERSION >= 80
inline constexpr auto dlpack_bool = kDLBool;
#else
inline constexpr auto dlpack_bool = kDLUInt;  // older versions have no bool
#endif

template <class T>
consteval DLDataType dlpack_type_of() {
  constexpr bool known = Scalar<T> && (!enable_scalar<T> || std::is_arithmetic_v<T>);
  static_assert(known,
                "fanout: no DLPack type is known for the elements of this array; specialise fanout::dlpack_type for "
                "them");
  auto code = kDLInt;
  if constexpr (std::is_same_v<T, bool>) {
    code = dlpack_bool;
  } else if constexpr (std::is_floating_point_v<T>) {
    code = kDLFloat;
  } else if constexpr (std::is_class_v<T>) {
    code = kDLComplex;
  } else if constexpr (std::is_enum_v<T>) {
    return dlpack_type_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_unsigned_v<T>) {
    code = kDLUInt;
  }
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}

inline std::string describe(const DLDataType& type) {
  std::string name = "type " + std::to_string(type.code) + " of ";
  if (type.code == kDLInt) name = "int";
  if (type.code == kDLUInt) name = "uint";
  if (type.code == kDLFloat) name = "float";
  if (type.code == kDLBfloat) name = "bfloat";
  if (type.code == kDLComplex) name = "complex";
  return name + std::to_string(type.bits) + (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

}  // namespace detail

/// DLPack's type code for T: numbers, bools, enums and complex numbers. Specialise it for a half or bfloat16 type of
/// your own.
template <class T>
inline constexpr DLDataType dlpack_type = detail::dlpack_type_of<T>();

namespace detail {

inline void check_dlpack_type(const DLDataType& expected, const DLDataType& found) {
  const bool same = expected.code == found.code && expected.bits == found.bits && expected.lanes == found.lanes;
  if (same) return;
  throw InvalidArgument(explain({.what = "a DLPack tensor has elements of another type",
                                 .expected = describe(expected),
                                 .found = describe(found),
                                 .advice = "name its own element type, or convert it before the export"}));
}

inline void check_dlpack_layout(const DLTensor& tensor, std::size_t rank) {
  if (tensor.device.device_type != kDLCPU) {
    throw DeviceMismatch(explain({.what = "a DLPack tensor in another memory",
                                  .expected = to_string(host_memory),
                                  .found = "device " + std::to_string(tensor.device.device_id) + " of type " +
                                           std::to_string(tensor.device.device_type),
                                  .advice = "copy it to the host before the export"}));
  }
  if (tensor.ndim < 0 || static_cast<std::size_t>(tensor.ndim) != rank) {
    throw ShapeMismatch(explain({.what = "a DLPack tensor with another number of axes",
                                 .expected = std::to_string(rank),
                                 .found = std::to_string(tensor.ndim)}));
  }
}

/// Throws ShapeMismatch unless the elements are contiguous and in row-major order. A tensor without strides is.
template <std::size_t R>
void check_dlpack_strides(const DLTensor& tensor, const Extents<R>& extents) {
  if (tensor.strides == nullptr || extents.size() == 0) return;
  std::size_t step = 1;
  for (std::size_t axis = R; axis > 0; --axis) {
    if (extents[axis - 1] > 1 && !std::cmp_equal(tensor.strides[axis - 1], step)) {
      throw ShapeMismatch(explain({.what = "a DLPack tensor is not contiguous in row-major order",
                                   .expected = "a stride of " + std::to_string(step) + " on axis " +
                                               std::to_string(axis - 1) + " of " + to_string(extents),
                                   .found = std::to_string(tensor.strides[axis - 1]),
                                   .advice = "make it contiguous before the export"}));
    }
    step *= extents[axis - 1];
  }
}

template <std::size_t R>
Extents<R> dlpack_extents(const DLTensor& tensor, std::size_t element_size) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return checked_extents(element_size, tensor.shape[I]...); }
  (std::make_index_sequence<R>());
}

/// Owns an exported tensor with its DLPack description. The deleter destroys it.
template <class T, std::size_t R>
struct DlpackExport {
  explicit DlpackExport(Tensor<T, R>&& from) : tensor(std::move(from)) {
    std::int64_t step = 1;
    for (std::size_t axis = R; axis > 0; --axis) {
      shape[axis - 1] = static_cast<std::int64_t>(tensor.extent(axis - 1));
      strides[axis - 1] = step;
      step *= shape[axis - 1];
    }
    managed.dl_tensor = {tensor.data(), {kDLCPU, 0}, static_cast<int>(R), dlpack_type<T>, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { delete static_cast<DlpackExport*>(self->manager_ctx); };
  }
  DlpackExport(const DlpackExport&) = delete;
  DlpackExport& operator=(const DlpackExport&) = delete;
  ~DlpackExport() = default;

  Tensor<T, R> tensor;
  std::int64_t shape[R];
  std::int64_t strides[R];
  DLManagedTensor managed;
};

}  // namespace detail

/// Borrows a DLPack tensor as a View of its R axes: `as_view<const float, 2>(managed->dl_tensor)`. The elements must be
/// in host memory, contiguous and row-major. The view must not outlive the tensor. Throws DeviceMismatch for other
/// memory, InvalidArgument if the elements are not of type T or not aligned, and ShapeMismatch for another number of
/// axes or another order.
template <class T, std::size_t R>
View<T, R> as_view(const DLTensor& tensor) {
  detail::check_dlpack_layout(tensor, R);
  using Element = std::remove_const_t<T>;
  constexpr bool is_bool = std::is_same_v<Element, bool>;
  const bool old_bool = is_bool && tensor.dtype.code == kDLUInt && tensor.dtype.bits == 8 && tensor.dtype.lanes == 1;
  if (!old_bool) detail::check_dlpack_type(dlpack_type<Element>, tensor.dtype);
  const Extents<R> extents = detail::dlpack_extents<R>(tensor, sizeof(T));
  detail::check_dlpack_strides(tensor, extents);
  if (extents.size() == 0) return {nullptr, extents, host_memory};
  void* const data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0) {
    throw InvalidArgument(explain({.what = "a DLPack tensor that is not aligned to its elements",
                                   .expected = "a multiple of " + std::to_string(alignof(T)) + " bytes"}));
  }
  return {static_cast<T*>(data), extents, host_memory};
}

/// Takes ownership of another library's tensor, without a copy. Calls its deleter once: when the Tensor releases the
/// memory, or before this throws. Throws what as_view() throws, and InvalidArgument for null.
template <class T, std::size_t R>
Tensor<T, R> from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw InvalidArgument(explain({.what = "no DLPack tensor", .found = "null"}));
  const auto release = [managed](T*) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
  View<T, R> view;
  try {
    view = as_view<T, R>(managed->dl_tensor);
  } catch (...) {
    release(nullptr);
    throw;
  }
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Tensor<T, R>::adopt(view.data(), release, view.extent(I)...);
  }
  (std::make_index_sequence<R>());
}

/// Exports a tensor in host memory to another library, which must call the deleter once. Pass `std::move(tensor)` to
/// export without a copy. Throws DeviceMismatch for a tensor in other memory.
template <class T, std::size_t R>
DLManagedTensor* to_dlpack(Tensor<T, R> tensor) {
  if (!(tensor.space() == host_memory)) {
    throw DeviceMismatch(explain({.what = "a tensor to be exported lies in another memory",
                                  .expected = to_string(host_memory),
                                  .found = to_string(tensor.space()),
                                  .advice = "copy it to the host first"}));
  }
  return &(new detail::DlpackExport<T, R>(std::move(tensor)))->managed;
}

}}  // namespace fanout::v0
