// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/gather/stack.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/host_allocator.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

inline constexpr LeafPath sample_root("sample");

[[noreturn]] FANOUT_INLINE void refuse_samples(const char* what, const LeafPath& path, std::size_t i,
                                               std::string expected, std::string found);

// check_samples() throws StructureMismatch if sample i has other children than the first one.

template <MapNode X>
void check_samples(const X& first, const X& other, std::size_t i, const LeafPath& path) {
  check_keys(first, path);
  check_keys(other, path);
  const std::string missing = missing_from(first, other);
  const std::string extra = missing_from(other, first);
  if (missing.empty() && extra.empty()) return;
  refuse_samples("are maps with different keys", path, i, "the keys",
                 (missing.empty() ? "" : "no " + missing) + (missing.empty() || extra.empty() ? "" : " and ") +
                     (extra.empty() ? "" : "also " + extra));
}

template <class X>
  requires(child_kind<X> == ChildKind::row)
void check_samples(const X& first, const X& other, std::size_t i, const LeafPath& path) {
  if (first.size() == other.size()) return;
  refuse_samples("are vectors of different lengths", path, i, std::to_string(first.size()) + " trees",
                 std::to_string(other.size()));
}

template <class X>
  requires(child_kind<X> == ChildKind::optional)
void check_samples(const X& first, const X& other, std::size_t i, const LeafPath& path) {
  if (first.has_value() == other.has_value()) return;
  refuse_samples("have a value in some and none in others", path, i, first.has_value() ? "a value" : "none",
                 other.has_value() ? "a value" : "none");
}

template <VariantNode X>
void check_samples(const X& first, const X& other, std::size_t i, const LeafPath& path) {
  const auto alternative = [](const X& x) {
    return x.valueless_by_exception() ? std::string("no value") : describe_alternative(x);
  };
  if (first.index() == other.index() && !first.valueless_by_exception()) return;
  refuse_samples("have different alternatives of a variant", path, i, alternative(first), alternative(other));
}

template <class T, std::size_t R>
Tensor<T, R> new_batch(const Extents<R>& extents, const backend::HostAllocator& memory) {
  return Tensor<T, R>(memory(checked_extents(sizeof(T), extents).size() * sizeof(T)), extents);
}

template <class T, std::size_t R, class X>
Tensor<T, R + 1> stack_samples(const ShardResults<X>& samples, const backend::HostAllocator& memory,
                               const LeafPath& path) {
  const Extents<R> extents = View<const T, R>(samples[0]).extents();
  Extents<R + 1> stacked{samples.size()};
  for (std::size_t axis = 0; axis < R; ++axis) stacked[axis + 1] = extents[axis];
  auto result = new_batch<T>(stacked, memory);
  T* to = result.data();
  for (std::size_t i = 0; i < samples.size(); ++i, to += extents.size()) {
    const View<const T, R> sample(samples[i]);
    if (!(sample.extents() == extents)) {
      throw ShapeMismatch(explain({.what = "the samples of a batch have different extents",
                                   .where = to_string(path),
                                   .expected = to_string(extents) + " as in sample 0 of the batch",
                                   .found = to_string(sample.extents()) + " in sample " + std::to_string(i),
                                   .advice = "give the loader a collate function, which pads or crops them"}));
    }
    if (!(sample.space() == host_memory)) {
      throw DeviceMismatch(explain({.what = "a sample is in the wrong memory",
                                    .where = to_string(path),
                                    .expected = to_string(host_memory),
                                    .found = to_string(sample.space()) + " in sample " + std::to_string(i),
                                    .advice = "copy it to the host, or give the loader a collate function"}));
    }
    if (!sample.empty()) std::memcpy(static_cast<void*>(to), sample.data(), sample.size() * sizeof(T));
  }
  return result;
}

/// A vector or a span that is stacked as an array of one axis.
template <class X>
concept StackedElements =
    (owns_elements<X> ||
     shows_elements<X>)&&ArrayLeaf<X>&& RefersToElements<X>&& std::is_trivially_copyable_v<typename X::value_type>;

/// A type for which somebody has specialised gather_traits, for this rule at least.
template <class X>
concept StacksItself =
    Gatherable<rules::Stack, X> && !std::is_base_of_v<gather_defaults<rules::Stack, X>, gather_traits<rules::Stack, X>>;

/// Makes the batch of these samples, of which there is at least one.
template <class X>
auto collate_values(const ShardResults<X>& samples, const backend::HostAllocator& memory, const LeafPath& path);

struct AsCollated {
  template <class T>
  using type = decltype(collate_values(std::declval<const ShardResults<std::remove_cvref_t<T>>&>(),
                                       std::declval<const backend::HostAllocator&>(), std::declval<const LeafPath&>()));
};

template <std::size_t I, class X>
auto collate_member(const ShardResults<X>& samples, const backend::HostAllocator& memory, const LeafPath& path) {
  using Member = std::remove_cvref_t<typename FixedChildren<X>::template type<I>>;
  return collate_values(
      ShardResults<Member>(samples, false,
                           [](const X& x) -> const Member& { return FixedChildren<X>::template get<I>(x); }),
      memory, fixed_path<X, I>(path));
}

template <class X, std::size_t... I>
auto collate_members([[maybe_unused]] const ShardResults<X>& samples,
                     [[maybe_unused]] const backend::HostAllocator& memory, [[maybe_unused]] const LeafPath& path,
                     std::index_sequence<I...>) {
  return std::tuple<decltype(collate_member<I>(samples, memory, path))...>{collate_member<I>(samples, memory, path)...};
}

template <class X>
auto collate_itself(const ShardResults<X>& samples, const LeafPath& path) {
  ShardResults<X> borrowed(samples, false, [](const X& x) -> const X& { return x; });
  Plan plan;  // as if each sample came from a shard of its own
  for (std::size_t i = 0; i < samples.size(); ++i) plan.add({.rows = {i, i + 1}, .device = 0});
  const DeviceId host = host_memory.owner;
  return gather_traits<rules::Stack, X>::gather(borrowed, GatherTarget{.plan = plan, .devices = &host, .target = {}},
                                                path);
}

template <class X>
auto collate_values(const ShardResults<X>& samples, const backend::HostAllocator& memory, const LeafPath& path) {
  if constexpr (StacksItself<X>) {
    return collate_itself(samples, path);
  } else if constexpr (Scalar<X>) {
    auto result = new_batch<X>(Extents<1>{samples.size()}, memory);
    for (std::size_t i = 0; i < samples.size(); ++i) result.data()[i] = samples[i];
    return result;
  } else if constexpr (StringNode<X>) {
    std::vector<std::string> result;
    result.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) result.emplace_back(std::string_view(samples[i]));
    return result;
  } else if constexpr (ContiguousArray<X>) {
    return stack_samples<std::remove_cv_t<typename X::element_type>, X::rank>(samples, memory, path);
  } else if constexpr (StackedElements<X>) {
    return stack_samples<std::remove_cv_t<typename X::value_type>, 1>(samples, memory, path);
  } else if constexpr (StructNode<X>) {
    return collate_members(samples, memory, path, fixed_indices<X>());
  } else if constexpr (Rebuildable<X> && !ArrayLeaf<X>) {
    if constexpr (requires { check_samples(samples[0], samples[0], std::size_t{}, path); }) {
      for (std::size_t i = 0; i < samples.size(); ++i) check_samples(samples[0], samples[i], i, path);
    }
    using Result = rebuilt_t<X, AsCollated>;
    return rebuild<Result, WithPlaces>(
        samples[0], path, [&]<class At>(const auto&, const LeafPath& at, const At& child) {
          using Child = std::remove_cvref_t<typename At::type>;
          return collate_values(
              ShardResults<Child>(samples, false, [&child](const X& x) -> const Child& { return child(x); }), memory,
              at);
        });
  } else {
    static_assert(sizeof(X) == 0,
                  "fanout: samples of this type cannot be stacked (this diagnostic shows the type); return numbers, "
                  "strings, tensors, views, vectors of numbers, or tuples, dicts, maps and structs of these, or give "
                  "the loader a collate function: Loader{dataset, options, collate}");
    return 0;  // so that no other error follows
  }
}

}  // namespace detail

/// Makes a batch of samples, as a Loader does by default. Each leaf gets a new first axis, the rows of the batch:
///
/// - numbers become a Tensor<T, 1>, and strings a std::vector<std::string>;
/// - tensors and views of R axes become a Tensor<T, R + 1>, and vectors and spans of numbers a Tensor<T, 2>;
/// - tuples, pairs, arrays, dicts, maps, optionals, variants, and vectors of trees stay what they are;
/// - a struct becomes a std::tuple of its members in their order, so `auto [x, y]` takes both apart.
///
/// Copies. `memory` says where the tensors are in host memory, for example fanout::cuda::pinned_memory. A type with a
/// gather_traits<rules::Stack, X> of its own allocates by itself. Throws
/// ShapeMismatch or StructureMismatch if the samples do not fit together, DeviceMismatch if one is in another memory,
/// OutOfMemory, and InvalidArgument if there are no samples.
template <class X>
auto collate(std::span<const X> samples, const backend::HostAllocator& memory = {}) {
  if (samples.empty()) {
    throw InvalidArgument(explain({.what = "a batch without samples", .where = "collate", .expected = "1 or more"}));
  }
  return detail::collate_values(
      ShardResults<X>(samples.size(), false, [&](std::size_t i) -> const X& { return samples[i]; }), memory,
      detail::sample_root);
}
template <class X>
auto collate(const std::vector<X>& samples, const backend::HostAllocator& memory = {}) {
  if constexpr (std::is_same_v<X, bool>) {  // such a vector has no elements that a span could show
    const detail::InlineArray<bool, 64> bools(samples.size(), [&](std::size_t i) { return bool(samples[i]); });
    return collate(std::span<const bool>(bools.data(), bools.size()), memory);
  } else {
    return collate(std::span<const X>(samples), memory);
  }
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/data/collate.ipp>
#endif
