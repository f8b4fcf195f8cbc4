// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/stages/made.hpp>
#include <fanout/stages/stage_types.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/key.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What comes back in training to a stage whose result later stages take under keys.

/// A value of the dx of a stage, and the device of that stage. Borrows it.
template <class Value>
struct PartOfDx {
  Value& value;
  DeviceId device;
};

/// The dx of a stage, Takes, of which a part may be for the S-th stage. Borrows it; the part is moved from.
template <class Takes, std::size_t S, class Dx>
struct GivenBack {
  std::optional<Dx>& dx;  // empty if all had their part
  DeviceId device;

  /// The part for a key, in a tuple. Empty if the stage does not take this key of the S-th stage.
  template <class K>
  auto of() const {
    if constexpr (!Takes::template takes_key_of<K, S>) {
      return std::tuple<>();
    } else if constexpr (has_key<Dx, K>) {
      auto& value = made(dx)[K()];
      return std::tuple{PartOfDx<std::remove_reference_t<decltype(value)>>{value, device}};
    } else if constexpr (Takes::takes_one_key) {
      return std::tuple{PartOfDx<Dx>{made(dx), device}};
    } else {
      return std::tuple<>();
    }
  }
};

inline constexpr LeafPath dx_root("dx");

/// The sum of what comes back for a key from several stages, in their order.
template <class K, class Value, class... Others>
auto sum_of_parts(const backend::Memory& memory, RowRange rows, const PartOfDx<Value>& first,
                  const PartOfDx<Others>&... others) {
  constexpr bool alike = (std::is_same_v<Others, Value> && ...);
  static_assert(alike,
                "fanout: stages that take a value under one key give back dx of different types for it; return the "
                "same type from the backward of each");
  if constexpr (!alike) {
    return std::move(first.value);
  } else {
    const Value* const values[] = {&first.value, &others.value...};
    const DeviceId devices[] = {first.device, others.device...};
    ShardResults<Value> pieces(std::size(values), true,
                               [&values](std::size_t i) -> const Value& { return *values[i]; });
    const Plan plan(std::size(values), [rows](std::size_t i) { return Shard{.rows = rows, .device = i}; });
    const GatherTarget place{.plan = plan, .devices = devices, .target = memory, .did = "gave back"};
    return gather_traits<rules::Sum, Value>::gather(pieces, place, LeafPath(dx_root, K::name()));
  }
}

/// What comes back for one key, as an entry of a dict in a tuple; empty if no stage takes the key. Throws ShapeMismatch
/// if what stages give back has different extents.
template <class K, class... Given>
auto back_for_key(const backend::Memory& memory, RowRange rows, const Given&... given) {
  return std::apply(
      [&]<class... Value>(const PartOfDx<Value>&... parts) {
        if constexpr (sizeof...(Value) == 0) {
          return std::tuple<>();
        } else if constexpr (sizeof...(Value) == 1) {
          return std::tuple{Entry<K, Value...>{std::move(parts.value...)}};
        } else {
          auto sum = sum_of_parts<K>(memory, rows, parts...);
          return std::tuple{Entry<K, decltype(sum)>{std::move(sum)}};
        }
      },
      std::tuple_cat(given.template of<K>()...));
}

template <class Y>
struct KeysOf;
template <class... K, class... T>
struct KeysOf<Dict<Entry<K, T>...>> {
  /// A dict with what comes back for each key that a stage has taken.
  template <class... Given>
  static auto back(const backend::Memory& memory, RowRange rows, const Given&... given) {
    return std::apply([](auto&&... entry) { return dict(std::move(entry)...); },
                      std::tuple_cat(back_for_key<K>(memory, rows, given...)...));
  }
};

}}}  // namespace fanout::v0::detail
