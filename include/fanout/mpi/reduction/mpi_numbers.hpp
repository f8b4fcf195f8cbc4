// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/collective/process_ranks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The MPI type and operation that reduce numbers as a NumberFold does.
class MpiNumbers {
 public:
  FANOUT_INLINE explicit MpiNumbers(const backend::NumberFold& fold) noexcept;

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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/mpi_numbers.ipp>
#endif
