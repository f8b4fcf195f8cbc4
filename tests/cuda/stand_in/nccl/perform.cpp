// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the operations do to numbers.
#include <algorithm>
#include <cstring>

#include "clique.hpp"

namespace stand_in_nccl {
namespace {

bool is(const Operation& operation, const char* name) { return std::strcmp(operation.name, name) == 0; }

/// Half precision is added up as float, as GPUs do it.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<__half> {
  using type = float;
};
template <>
struct Wide<__nv_bfloat16> {
  using type = float;
};

template <class T>
void reduce(const std::vector<Operation>& ranks, std::size_t first, std::size_t count, void* out) {
  using Number = typename Wide<T>::type;
  const auto reduction = ranks[0].reduction;
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = [&](const Operation& rank) {
      const auto sent = static_cast<Number>(static_cast<const T*>(rank.send)[first + i]);
      return rank.scale == 1 ? sent : static_cast<Number>(sent * static_cast<Number>(rank.scale));
    };
    auto sum = number(ranks[0]);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const auto next = number(ranks[rank]);
      if (reduction == ncclProd) {
        sum = static_cast<Number>(sum * next);
      } else if (reduction == ncclMax) {
        sum = std::max(sum, next);
      } else if (reduction == ncclMin) {
        sum = std::min(sum, next);
      } else {
        sum = static_cast<Number>(sum + next);
      }
    }
    if (reduction == ncclAvg) sum = static_cast<Number>(sum / static_cast<Number>(ranks.size()));
    result[i] = static_cast<T>(sum);
  }
  std::memcpy(out, result.data(), count * sizeof(T));
}

void reduce(const std::vector<Operation>& ranks, std::size_t first, std::size_t count, void* out) {
  switch (ranks[0].type) {
    case ncclInt8:
      return reduce<std::int8_t>(ranks, first, count, out);
    case ncclUint8:
      return reduce<std::uint8_t>(ranks, first, count, out);
    case ncclInt32:
      return reduce<std::int32_t>(ranks, first, count, out);
    case ncclUint32:
      return reduce<std::uint32_t>(ranks, first, count, out);
    case ncclInt64:
      return reduce<std::int64_t>(ranks, first, count, out);
    case ncclUint64:
      return reduce<std::uint64_t>(ranks, first, count, out);
    case ncclFloat16:
      return reduce<__half>(ranks, first, count, out);
    case ncclBfloat16:
      return reduce<__nv_bfloat16>(ranks, first, count, out);
    case ncclFloat32:
      return reduce<float>(ranks, first, count, out);
    case ncclFloat64:
      return reduce<double>(ranks, first, count, out);
    default:
      return;
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 0;
  }
}

const char* name_of(ncclDataType_t type) {
  constexpr const char* names[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                   "uint64", "float16", "float32", "float64", "bfloat16"};
  return static_cast<std::size_t>(type) < std::size(names) ? names[type] : "?";
}

bool known(ncclDataType_t type, ncclRedOp_t reduction) { return size_of(type) != 0 && reduction <= ncclAvg; }

bool Operation::is_point_to_point() const { return is(*this, "ncclSend") || is(*this, "ncclRecv"); }

std::size_t Operation::send_count(int ranks, int rank) const {
  if (is(*this, "ncclRecv") || (is(*this, "ncclBroadcast") && rank != other)) return 0;
  return is(*this, "ncclReduceScatter") ? count * static_cast<std::size_t>(ranks) : count;
}

std::size_t Operation::recv_count(int ranks, int rank) const {
  if (is(*this, "ncclSend") || (is(*this, "ncclReduce") && rank != other)) return 0;
  return is(*this, "ncclAllGather") ? count * static_cast<std::size_t>(ranks) : count;
}

std::string Operation::text() const {
  constexpr const char* reductions[] = {"sum", "prod", "max", "min", "avg"};
  std::string said = std::string(name) + " of " + std::to_string(count) + " " + name_of(type);
  if (is(*this, "ncclAllReduce") || is(*this, "ncclReduce") || is(*this, "ncclReduceScatter")) {
    said += std::string(", ") + reductions[reduction];
  }
  if (is(*this, "ncclBroadcast") || is(*this, "ncclReduce")) said += ", root " + std::to_string(other);
  return said;
}

void perform(const std::vector<Operation>& ranks) {
  const Operation& first = ranks[0];
  const std::size_t bytes = first.count * size_of(first.type);
  if (bytes == 0) return;
  if (is(first, "ncclBroadcast")) {
    const void* const from = ranks[static_cast<std::size_t>(first.other)].send;
    for (const auto& rank : ranks) std::memmove(rank.recv, from, bytes);
  } else if (is(first, "ncclAllGather")) {
    std::vector<char> all(bytes * ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) std::memcpy(all.data() + i * bytes, ranks[i].send, bytes);
    for (const auto& rank : ranks) std::memcpy(rank.recv, all.data(), all.size());
  } else if (is(first, "ncclReduce")) {
    reduce(ranks, 0, first.count, ranks[static_cast<std::size_t>(first.other)].recv);
  } else {
    // All results before the first is written: a rank may receive where it sends.
    const bool scatter = is(first, "ncclReduceScatter");
    std::vector<std::vector<char>> results(scatter ? ranks.size() : 1, std::vector<char>(bytes));
    for (std::size_t i = 0; i < results.size(); ++i) reduce(ranks, i * first.count, first.count, results[i].data());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::memcpy(ranks[i].recv, results[scatter ? i : 0].data(), bytes);
    }
  }
}

}  // namespace stand_in_nccl
