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
#include <fanout/gather/gather_place.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/gather/pieces.hpp>
#include <fanout/gather/under_rule.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/shard_place.hpp>
#include <fanout/scatter/splitting.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// Leaves what each shard returned where it is.
struct LeaveSharded {};

/// What the shards of a call returned at one place, one value each, in row order, with the plan by which they ran. As
/// an argument of the next call each shard is handed its own value again, in place, whatever that model's split policy
/// says. gather() puts it together. Owns the values; arrays stand in the memory where `forward` made them.
template <class X>
class Sharded {
 public:
  using value_type = X;

  /// A value and a device for each shard of the plan; `target` is where gather() puts the result.
  Sharded(const Plan& plan, std::vector<DeviceId> devices, std::vector<X> values, const backend::Memory& target = {})
      : plan_(plan), devices_(std::move(devices)), values_(std::move(values)), target_(target) {}

  std::size_t size() const noexcept { return values_.size(); }
  const X& operator[](std::size_t i) const noexcept { return values_[i]; }
  auto begin() const noexcept { return values_.begin(); }
  auto end() const noexcept { return values_.end(); }

  const Plan& plan() const noexcept { return plan_; }
  /// That ran the shards, one for each.
  const std::vector<DeviceId>& devices() const noexcept { return devices_; }
  const backend::Memory& target() const noexcept { return target_; }

 private:
  Plan plan_;
  std::vector<DeviceId> devices_;
  std::vector<X> values_;
  backend::Memory target_;
};
template <class X>
inline constexpr bool wraps_tree<Sharded<X>> = true;
template <class X>
inline constexpr bool splits_itself<Sharded<X>> = true;

/// `return sharded(x)`: what the shards return is not put together but left where it is, to be the argument of a next
/// call on the same devices. An Output stays the memory that `forward` wrote, a Tensor or a vector is moved, numbers
/// and texts are as they were returned; what is only borrowed, as by a View, is copied.
template <class X>
UnderRule<LeaveSharded, std::remove_cvref_t<X>> sharded(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <class X>
inline constexpr bool is_sharded<Sharded<X>> = true;

// What one shard returned, by itself, as a value that owns what it shows.

template <>
inline constexpr bool lets_choose<LeaveSharded> = false;

template <Scalar X>
struct Gathering<LeaveSharded, X> {
  using type = X;
  static type gather(Pieces<X>& pieces, const GatherPlace&, const LeafPath&) { return pieces[0]; }
};

template <StringNode X>
struct Gathering<LeaveSharded, X> {
  using type = std::string;
  static type gather(Pieces<X>& pieces, const GatherPlace&, const LeafPath&) {
    return type(std::string_view(pieces[0]));
  }
};

template <>
inline constexpr bool takes_rows<LeaveSharded> = true;

template <ArrayLeaf X>
  requires Gatherable<Concatenate, X>
struct Gathering<LeaveSharded, X> {
  using type = gathered_under_t<Concatenate, X>;
  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    GatherPlace own = place.on_axis(0);
    own.outputs = nullptr;  // what stays on its device is not written to a destination
    if constexpr (requires { pieces[0].space(); }) own.target = memory_in(pieces[0].space(), place.target);
    return Gathering<Concatenate, X>::gather(pieces, own, path);
  }
};

template <class Allocator>
struct Gathering<LeaveSharded, std::vector<bool, Allocator>> {
  using X = std::vector<bool, Allocator>;
  using type = X;
  static type gather(Pieces<X>& pieces, const GatherPlace&, const LeafPath&) { return pieces.take_only(); }
};

/// Keeps the buffer of which it is a window alive.
template <class T, std::size_t R>
struct Gathering<LeaveSharded, Output<T, R>> {
  using type = Tensor<T, R>;
  static type gather(Pieces<Output<T, R>>& pieces, const GatherPlace&, const LeafPath&) { return pieces[0]; }
};
template <class T, std::size_t R>
struct Gathering<LeaveSharded, Tensor<T, R>> {
  using type = Tensor<T, R>;
  static type gather(Pieces<type>& pieces, const GatherPlace&, const LeafPath&) { return pieces.take_only(); }
};

template <class X>
  requires Gatherable<LeaveSharded, X>
struct GatheringChosen<LeaveSharded, X> {
  using value_type = gathered_under_t<LeaveSharded, X>;
  using type = Sharded<value_type>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    std::vector<DeviceId> devices;
    std::vector<value_type> values;
    devices.reserve(pieces.size());
    values.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Pieces<X> only(1, pieces.owned());
      only.set(0, pieces[i]);
      values.push_back(Gathering<LeaveSharded, X>::gather(only, place, path));
      devices.push_back(place.device(i));
    }
    return {place.plan, std::move(devices), std::move(values), place.target};
  }
};

/// A struct keeps its type, so one that owns its arrays cannot be made of views: a shard is handed the whole of its
/// own.
template <class X>
struct sharded_piece {
  using type = piece_t<X>;
  static type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    return Splitting<X>::piece(x, place, path);
  }
};
template <StructLike X>
struct sharded_piece<X> {
  using type = const X&;
  static type piece(const X& x, const ShardPlace&, const LeafPath&) { return x; }
};

template <class X>
struct Splitting<Sharded<X>> {
  using piece_type = typename sharded_piece<X>::type;

  static piece_type piece(const Sharded<X>& x, const ShardPlace& place, const LeafPath& path) {
    ShardPlace own = place.on_axis(0);
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
