// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <fanout/adapt/torch_tensor.hpp>
#include <fanout/base/error.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

// Containers of libtorch. Those of the standard library are trees like any other.

namespace fanout { inline namespace v0 {

namespace detail {

/// Access to the entries of a container: `each(x, f)` calls `f(key, value)` in its order, `find(x, key)` returns a
/// value or nullopt, `add(x, key, value)` appends an entry.
template <class X>
struct TorchEntries;

template <class K, class V>
struct TorchEntries<c10::Dict<K, V>> {
  using value_type = V;

  static void each(const c10::Dict<K, V>& x, const auto& f) {
    for (const auto& entry : x) f(K(entry.key()), V(entry.value()));
  }
  static std::optional<V> find(const c10::Dict<K, V>& x, const K& key) {
    const auto found = x.find(key);
    return found == x.end() ? std::nullopt : std::optional<V>(found->value());
  }
  static void add(c10::Dict<K, V>& x, const K& key, V value) { x.insert(key, std::move(value)); }
};

template <class K, class V>
struct TorchEntries<torch::OrderedDict<K, V>> {
  using value_type = V;

  static void each(const torch::OrderedDict<K, V>& x, const auto& f) {
    for (const auto& item : x) f(item.key(), item.value());
  }
  static std::optional<V> find(const torch::OrderedDict<K, V>& x, const K& key) {
    const V* const found = x.find(key);
    return found == nullptr ? std::nullopt : std::optional<V>(*found);
  }
  static void add(torch::OrderedDict<K, V>& x, const K& key, V value) { x.insert(key, std::move(value)); }
};

template <class V>
struct TorchEntries<c10::List<V>> {
  using value_type = V;

  static void each(const c10::List<V>& x, const auto& f) {
    for (std::size_t i = 0; i < x.size(); ++i) f(i, x.get(i));
  }
  static std::optional<V> find(const c10::List<V>& x, std::size_t i) {
    return i < x.size() ? std::optional<V>(x.get(i)) : std::nullopt;
  }
  static void add(c10::List<V>& x, std::size_t, V value) { x.push_back(std::move(value)); }
};

template <class X>
concept TorchContainer = requires {
  typename TorchEntries<X>::value_type;
};
template <class X>
using torch_value_t = typename TorchEntries<X>::value_type;

/// Calls `f(path)` with the path of an entry, and returns the result.
template <class Key>
auto at_torch_entry(const LeafPath& path, const Key& key, const auto& f) {
  if constexpr (std::is_same_v<Key, std::size_t>) {
    return f(LeafPath(path, key));
  } else {
    return f(LeafPath::at_key(path, key, 0));
  }
}

/// Gathers entry by entry. Only by rules that keep the type of the values, since these containers hold few types.
template <class Rule, class X>
struct GatherTorch {};
template <class Rule, class X>
  requires(
      Gatherable<Rule, torch_value_t<X>>&& std::is_same_v<gathered_under_t<Rule, torch_value_t<X>>, torch_value_t<X>>)
struct GatherTorch<Rule, X> {
  using Entries = TorchEntries<X>;
  using V = torch_value_t<X>;
  using type = X;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].size() != pieces[0].size()) {
        refuse_structure(place, path, i, "replicas returned containers of different sizes",
                         std::to_string(pieces[0].size()) + " entries", std::to_string(pieces[i].size()));
      }
    }
    type result;
    Entries::each(pieces[0], [&](const auto& key, const V& first) {
      at_torch_entry(path, key, [&](const LeafPath& at) {
        std::vector<V> values{first};
        values.reserve(pieces.size());
        for (std::size_t i = 1; i < pieces.size(); ++i) {
          std::optional<V> found = Entries::find(pieces[i], key);
          if (!found) refuse_structure(place, at, i, "replicas returned different keys", "this one", "others");
          values.push_back(*std::move(found));
        }
        ShardResults<V> inside(pieces.size(), false);
        for (std::size_t i = 0; i < pieces.size(); ++i) inside.set(i, values[i]);
        Entries::add(result, key, gather_traits<Rule, V>::gather(inside, place, at));
      });
    });
    return result;
  }

  static void visit_numbers(type& result, const LeafPath& path, const auto& f) {
    Entries::each(result, [&](const auto& key, V value) {  // which refers to the same tensors
      at_torch_entry(path, key, [&](const LeafPath& at) { gather_traits<Rule, V>::visit_numbers(value, at, f); });
    });
  }
};

template <class Rule>
concept OverShards = !std::is_same_v<Rule, rules::Sharded>;

}  // namespace detail

template <detail::OverShards Rule, class K, class V>
struct gather_traits<Rule, c10::Dict<K, V>> : detail::GatherTorch<Rule, c10::Dict<K, V>> {};
template <detail::OverShards Rule, class K, class V>
struct gather_traits<Rule, torch::OrderedDict<K, V>> : detail::GatherTorch<Rule, torch::OrderedDict<K, V>> {};
template <detail::OverShards Rule, class V>
struct gather_traits<Rule, c10::List<V>> : detail::GatherTorch<Rule, c10::List<V>> {};

/// c10::Dict, c10::List and torch::OrderedDict of tensors, or of such containers. Split entry by entry: all entries
/// must have the same number of rows, else ShapeMismatch is thrown. They are array leaves rather than maps or vectors,
/// since they give no references to their elements.
template <detail::TorchContainer X>
  requires std::same_as<typename leaf_traits<detail::torch_value_t<X>>::piece_type, detail::torch_value_t<X>>
struct leaf_traits<X> {
  using piece_type = X;
  using Entries = detail::TorchEntries<X>;
  using Value = leaf_traits<detail::torch_value_t<X>>;

  static std::size_t rows(const X& x) { return rows_on(0, x, LeafPath("input")); }
  static X piece(const X& x, std::size_t begin, std::size_t end) {
    return piece_on(0, x, begin, end, LeafPath("input"));
  }

  static std::size_t rows_on(int axis, const X& x, const LeafPath& path) {
    std::optional<std::size_t> rows;
    Entries::each(x, [&](const auto& key, const auto& value) {
      detail::at_torch_entry(path, key, [&](const LeafPath& at) {
        const std::size_t found = Value::rows_on(axis, value, at);
        if (rows && found != *rows) {
          throw ShapeMismatch(explain({.what = "entries of one argument have different numbers of rows",
                                       .where = to_string(at),
                                       .expected = std::to_string(*rows) + " as in those before",
                                       .found = std::to_string(found),
                                       .advice = "pass broadcast(x) if every replica needs all of it"}));
        }
        rows = found;
      });
    });
    if (!rows) {
      throw ShapeMismatch(explain({.what = "an empty container of tensors cannot be split",
                                   .where = to_string(path),
                                   .expected = "at least one entry",
                                   .advice = "pass broadcast(x) if every replica needs all of it"}));
    }
    return *rows;
  }

  static X piece_on(int axis, const X& x, std::size_t begin, std::size_t end, const LeafPath& path) {
    X some;
    Entries::each(x, [&](const auto& key, const auto& value) {
      detail::at_torch_entry(path, key, [&](const LeafPath& at) {
        Entries::add(some, key, Value::piece_on(axis, value, begin, end, at));
      });
    });
    return some;
  }
};

}}  // namespace fanout::v0
