// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What NCCL is told of elements. Needs NCCL's header alone, not its library.
#include <doctest/doctest.h>

#include <complex>
#include <cstddef>
#include <cstdint>

#include <fanout/cuda/nccl.hpp>

using fanout::backend::Collective;
using fanout::cuda::detail::nccl_elements;
using fanout::cuda::detail::NcclElements;

namespace {

template <class T>
NcclElements elements_of(Collective::Kind kind) {
  return nccl_elements({.kind = kind, .type = &fanout::detail::element_type<T>, .count = 6});
}

/// Whether so many numbers of type T are reduced as that type of NCCL's, whichever reduction it is.
template <class T>
bool are_reduced_as(ncclDataType_t type) {
  for (const auto kind : {Collective::Kind::reduce, Collective::Kind::all_reduce, Collective::Kind::reduce_scatter}) {
    const NcclElements found = elements_of<T>(kind);
    if (!found.known || found.type != type || found.count != 6) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("numbers map to the NCCL type of their size and sign") {
  CHECK(are_reduced_as<std::int8_t>(ncclInt8));
  CHECK(are_reduced_as<std::uint8_t>(ncclUint8));
  CHECK(are_reduced_as<std::int32_t>(ncclInt32));
  CHECK(are_reduced_as<std::uint32_t>(ncclUint32));
  CHECK(are_reduced_as<std::int64_t>(ncclInt64));
  CHECK(are_reduced_as<std::uint64_t>(ncclUint64));
  CHECK(are_reduced_as<float>(ncclFloat32));
  CHECK(are_reduced_as<double>(ncclFloat64));
}

TEST_CASE("elements that NCCL cannot reduce are not known, and are only moved, as bytes") {
  const auto is_only_moved = []<class T>(const T*) {
    for (const auto kind : {Collective::Kind::broadcast, Collective::Kind::all_gather, Collective::Kind::send}) {
      const NcclElements found = elements_of<T>(kind);
      if (!found.known || found.type != ncclInt8 || found.count != 6 * sizeof(T)) return false;
    }
    return !elements_of<T>(Collective::Kind::all_reduce).known;
  };
  CHECK(is_only_moved(static_cast<const short*>(nullptr)));
  CHECK(is_only_moved(static_cast<const std::uint16_t*>(nullptr)));
  CHECK(is_only_moved(static_cast<const long double*>(nullptr)));
  CHECK(is_only_moved(static_cast<const std::complex<float>*>(nullptr)));
  CHECK_FALSE(nccl_elements({.kind = Collective::Kind::barrier}).known);
}
