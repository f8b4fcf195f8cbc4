// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <mpi.h>

#include <fanout/collective/element_type.hpp>
#include <fanout/collective/process_ranks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The MPI type and operation that reduce numbers as a NumberFold does.
class MpiNumbers {
 public:
  explicit MpiNumbers(const backend::NumberFold& fold) noexcept {
    using Kind = backend::ElementType::Kind;
    using backend::Reduction;
    const bool adds = fold.by == Reduction::sum;
    if (!adds && fold.by != Reduction::min && fold.by != Reduction::max) return;
    operation_ = adds ? MPI_SUM : fold.by == Reduction::min ? MPI_MIN : MPI_MAX;
    if (fold.kind == Kind::floating) {
      // MPI_MIN and MPI_MAX lose some NaNs, in an order that the MPI chooses.
      if (adds && fold.size == sizeof(float)) set<float>(MPI_FLOAT, fold.by);
      if (adds && fold.size == sizeof(double)) set<double>(MPI_DOUBLE, fold.by);
    } else if (adds && fold.kind != Kind::other) {
      // Signed sums are added as unsigned ones, which wrap.
      if (fold.size == 1) set<std::uint8_t>(MPI_UINT8_T, fold.by);
      if (fold.size == 2) set<std::uint16_t>(MPI_UINT16_T, fold.by);
      if (fold.size == 4) set<std::uint32_t>(MPI_UINT32_T, fold.by);
      if (fold.size == 8) set<std::uint64_t>(MPI_UINT64_T, fold.by);
    } else if (fold.kind == Kind::signed_integer) {  // MPICH 4.0 compares unsigned integers as signed ones
      if (fold.size == 1) set<std::int8_t>(MPI_INT8_T, fold.by);
      if (fold.size == 2) set<std::int16_t>(MPI_INT16_T, fold.by);
      if (fold.size == 4) set<std::int32_t>(MPI_INT32_T, fold.by);
      if (fold.size == 8) set<std::int64_t>(MPI_INT64_T, fold.by);
    }
  }

  /// False if MPI has no such type or operation.
  bool known() const noexcept { return fill_ != nullptr; }
  MPI_Datatype type() const noexcept { return type_; }
  MPI_Op operation() const noexcept { return operation_; }

  /// Sets `count` numbers to the value that changes no result, for a rank that does not count.
  void fill(void* numbers, std::size_t count) const noexcept { fill_(numbers, count, by_); }

 private:
  template <class T>
  void set(MPI_Datatype type, backend::Reduction by) noexcept {
    type_ = type;
    by_ = by;
    fill_ = [](void* numbers, std::size_t count, backend::Reduction of) noexcept {
      T value = 0;
      if constexpr (std::is_floating_point_v<T>) value = -value;  // -0.0 + x is x, also for -0.0
      if (of == backend::Reduction::min) value = std::numeric_limits<T>::max();
      if (of == backend::Reduction::max) value = std::numeric_limits<T>::lowest();
      auto* const to = static_cast<std::byte*>(numbers);
      for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    };
  }

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op operation_ = MPI_OP_NULL;
  backend::Reduction by_ = backend::Reduction::sum;
  void (*fill_)(void* numbers, std::size_t count, backend::Reduction by) noexcept = nullptr;
};

}}}  // namespace fanout::v0::detail
