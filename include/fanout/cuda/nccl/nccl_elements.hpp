// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <nccl.h>

#include <fanout/collective/collective.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The NCCL type and count that stand for a call's elements. `known` is false if NCCL has no such type.
struct NcclElements {
  bool known = false;
  ncclDataType_t type = ncclInt8;
  std::size_t count = 0;
};

inline NcclElements nccl_elements(const backend::Collective& call) {
  using Kind = backend::ElementType::Kind;
  if (call.type == nullptr) return {};
  if (!call.is_reduction()) return {true, ncclInt8, call.bytes()};  // no reduction: moved as bytes
  const auto found = [&call](ncclDataType_t type) { return NcclElements{true, type, call.count}; };
  const std::size_t size = call.type->size;
  if (call.type->kind == Kind::floating && size == 8) return found(ncclFloat64);
  if (call.type->kind == Kind::floating && size == 4) return found(ncclFloat32);
  if (call.type->kind == Kind::signed_integer && size == 8) return found(ncclInt64);
  if (call.type->kind == Kind::signed_integer && size == 4) return found(ncclInt32);
  if (call.type->kind == Kind::signed_integer && size == 1) return found(ncclInt8);
  if (call.type->kind == Kind::unsigned_integer && size == 8) return found(ncclUint64);
  if (call.type->kind == Kind::unsigned_integer && size == 4) return found(ncclUint32);
  if (call.type->kind == Kind::unsigned_integer && size == 1) return found(ncclUint8);
  return {};
}

inline ncclRedOp_t nccl_reduction(backend::Reduction by) noexcept {
  switch (by) {
    case backend::Reduction::prod:
      return ncclProd;
    case backend::Reduction::min:
      return ncclMin;
    case backend::Reduction::max:
      return ncclMax;
    case backend::Reduction::mean:
      return ncclAvg;
    case backend::Reduction::sum:
      break;
  }
  return ncclSum;
}

}}}  // namespace fanout::v0::cuda::detail
