// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// A member of a struct with one value per shard. `forward` makes it from a T. The gathered struct holds the values of
/// all shards in row order. One value needs no allocation. T must be copyable and own its data.
template <class T>
class PerShard {
 public:
  using value_type = T;

  /// Holds no value.
  PerShard() = default;
  PerShard(T value) : one_(std::move(value)) {}  // NOLINT(google-explicit-constructor): is a T, in forward

  /// Holds the values of all pieces, in order.
  explicit PerShard(const ShardResults<PerShard>& pieces) : many_(joined(pieces)) {}

  std::size_t size() const noexcept { return one_.has_value() ? 1 : many_.size(); }
  const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  const T* begin() const noexcept { return one_.has_value() ? &*one_ : many_.data(); }
  const T* end() const noexcept { return begin() + size(); }

 private:
  // Tensor also for bool, since nothing can point to the elements of a std::vector<bool>.
  using Many = std::conditional_t<Scalar<T>, Tensor<T, 1>, std::vector<T>>;

  static Many joined(const ShardResults<PerShard>& pieces) {
    static_assert(detail::Outlasts<T>, "fanout: a PerShard outlives its shards, so its values must own their memory");
    std::size_t size = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) size += pieces[i].size();
    Many many;
    if constexpr (Scalar<T>) {
      many = Many::uninitialized(size);
    } else {
      many.reserve(size);
    }
    [[maybe_unused]] std::size_t next = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (const T& value : pieces[i]) {
        if constexpr (Scalar<T>) {
          many[next++] = value;
        } else {
          many.push_back(value);
        }
      }
    }
    return many;
  }

  std::optional<T> one_;
  Many many_;
};

namespace detail {

template <class T>
inline constexpr bool wraps_tree<PerShard<T>> = true;

template <class Rule, class T>
  requires lets_choose<Rule>
struct gather_defaults<Rule, PerShard<T>> {
  using type = PerShard<T>;

  static type gather(ShardResults<type>& pieces, const GatherTarget&, const LeafPath&) { return type(pieces); }
};

}  // namespace detail
}}  // namespace fanout::v0
