// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace rules {

/// The rule that leaves each shard's result in the memory of its device.
struct Sharded {};

}  // namespace rules

/// The results of the shards of a call, one value per shard, in row order, with the plan of that call. As an argument
/// of another call, it brings that plan: each shard receives its own value, in place, and the split policy of the model
/// is not used. gather() gathers it. Owns the values. Arrays stay in the memory in which `forward` made them, but for
/// those that leave a full device: see Options::shrink_on_out_of_memory.
template <class X>
class Sharded {
 public:
  using value_type = X;

  /// `devices` and `values` have one element per shard of the plan. gather() puts the result in `target`.
  Sharded(const Plan& plan, std::vector<DeviceId> devices, std::vector<X> values, const backend::Memory& target = {})
      : plan_(plan), devices_(std::move(devices)), values_(std::move(values)), target_(target) {}

  std::size_t size() const noexcept { return values_.size(); }
  const X& operator[](std::size_t i) const noexcept { return values_[i]; }
  auto begin() const noexcept { return values_.begin(); }
  auto end() const noexcept { return values_.end(); }

  const Plan& plan() const noexcept { return plan_; }
  /// The device of each shard.
  const std::vector<DeviceId>& devices() const noexcept { return devices_; }
  const backend::Memory& target() const noexcept { return target_; }

 private:
  Plan plan_;
  std::vector<DeviceId> devices_;
  std::vector<X> values_;
  backend::Memory target_;
};

namespace detail {

template <class X>
inline constexpr bool wraps_tree<Sharded<X>> = true;

}  // namespace detail

template <class X>
inline constexpr bool splits_itself<Sharded<X>> = true;

/// `return sharded(x)`: the call does not gather the result. It returns a Sharded, whose values stay on the devices,
/// for a next call on the same devices. An Output keeps the memory that `forward` wrote. A Tensor or a vector is moved.
/// Borrowed memory, for example of a View, is copied.
template <class X>
detail::WithRule<rules::Sharded, std::remove_cvref_t<X>> sharded(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <class X>
inline constexpr bool is_sharded<Sharded<X>> = true;

// Gathers the result of each shard on its own, to a value that owns its memory.

template <>
inline constexpr bool lets_choose<rules::Sharded> = false;

template <Scalar X>
struct gather_defaults<rules::Sharded, X> {
  using type = X;
  static type gather(ShardResults<X>& pieces, const GatherTarget&, const LeafPath&) { return pieces[0]; }
};

template <StringNode X>
struct gather_defaults<rules::Sharded, X> {
  using type = std::string;
  static type gather(ShardResults<X>& pieces, const GatherTarget&, const LeafPath&) {
    return type(std::string_view(pieces[0]));
  }
};

template <>
inline constexpr bool takes_rows<rules::Sharded> = true;

template <ArrayLeaf X>
  requires Gatherable<rules::Concatenate, X>
struct gather_defaults<rules::Sharded, X> {
  using type = gathered_under_t<rules::Concatenate, X>;
  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    GatherTarget own = place.on_axis(0);
    own.outputs = nullptr;  // only gathered results are written to the caller's memory
    if constexpr (requires { pieces[0].space(); }) own.target = memory_in(pieces[0].space(), place.target);
    return gather_traits<rules::Concatenate, X>::gather(pieces, own, path);
  }
};

template <class Allocator>
struct gather_defaults<rules::Sharded, std::vector<bool, Allocator>> {
  using X = std::vector<bool, Allocator>;
  using type = X;
  static type gather(ShardResults<X>& pieces, const GatherTarget&, const LeafPath&) { return pieces.take_only(); }
};

/// True if the bytes of a buffer live as long as it does. They do not if they are the caller's, as in a destination of
/// into(), or those of another result.
inline bool keeps_bytes(const OutputBuffer& buffer) noexcept {
  return buffer.owns_bytes() && !is_borrowed(buffer.memory());
}

/// The tensor shares and retains the output's buffer, if that keeps its bytes.
template <class T, std::size_t R>
struct gather_defaults<rules::Sharded, Output<T, R>> {
  using type = Tensor<T, R>;
  static type gather(ShardResults<Output<T, R>>& pieces, const GatherTarget&, const LeafPath&) {
    const OutputBuffer& buffer = pieces[0].buffer();
    if (keeps_bytes(buffer)) return pieces[0];
    return type(View<const T, R>(pieces[0]), *buffer.memory().operations->fresh);
  }
};
template <class T, std::size_t R>
struct gather_defaults<rules::Sharded, Tensor<T, R>> {
  using type = Tensor<T, R>;
  static type gather(ShardResults<type>& pieces, const GatherTarget&, const LeafPath&) {
    const OutputBuffer* const buffer = buffer_of(pieces[0]);
    return buffer == nullptr || keeps_bytes(*buffer) ? pieces.take_only() : type(pieces[0]);
  }
};

template <class X>
  requires Gatherable<rules::Sharded, X>
struct gather_chosen<rules::Sharded, X> {
  using value_type = gathered_under_t<rules::Sharded, X>;
  using type = Sharded<value_type>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    std::vector<DeviceId> devices;
    std::vector<value_type> values;
    devices.reserve(pieces.size());
    values.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ShardResults<X> only(1, pieces.owned());
      only.set(0, pieces[i]);
      values.push_back(gather_traits<rules::Sharded, X>::gather(only, place, path));
      devices.push_back(place.device(i));
    }
    return {place.plan, std::move(devices), std::move(values), place.target};
  }
};

/// The piece that a shard receives of its value. A struct keeps its type. If it owns its arrays, it cannot be rebuilt
/// from views, so the shard receives a reference to the whole struct.
template <class X>
struct sharded_piece {
  using type = piece_t<X>;
  static type piece(const X& x, const ScatterTarget& place, const LeafPath& path) {
    return piece_of<X>(x, place, path);
  }
};
template <StructLike X>
struct sharded_piece<X> {
  using type = const X&;
  static type piece(const X& x, const ScatterTarget&, const LeafPath&) { return x; }
};

template <class X>
struct scatter_defaults<Sharded<X>> {
  using piece_type = typename sharded_piece<X>::type;

  static piece_type piece(const Sharded<X>& x, const ScatterTarget& place, const LeafPath& path) {
    ScatterTarget own = place.on_axis(0);
    own.rows = all_rows;
    return sharded_piece<X>::piece(x[place.shard], own, path);
  }
  template <class F>
  static void visit_rows(const Sharded<X>& x, int, const LeafPath& path, F& f) {
    f(x.plan(), path);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
