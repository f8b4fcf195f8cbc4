// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/base/small_vector.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/number.hpp>

namespace fanout::inline v0 {

/// How the numbers of all ranks become one, element by element and in the order of the ranks, so that the result is
/// bitwise the same in every run. A mean counts every rank once, however many rows it has.
enum class Reduction : unsigned char { sum, prod, min, max, mean };

/// The elements of the arrays of a collective: any trivially copyable type; for reductions, numbers.
struct ElementType {
  enum class Kind : unsigned char { other, signed_integer, unsigned_integer, floating };

  std::string (*name)();
  std::size_t size;
  Kind kind;
  /// Whether this reduction can be made of such elements.
  bool (*reduces)(Reduction by) noexcept;
  /// Makes `so_far[i]` what becomes of it and `x[i]`.
  void (*combine)(Reduction by, void* so_far, const void* x, std::size_t count);
  /// Divides sums by the number of ranks.
  void (*divide)(void* sums, std::size_t ranks, std::size_t count);
};

namespace detail {

template <class T>
concept Summed = Scalar<T> && !std::is_enum_v<T> && !std::same_as<T, bool> && requires(const T& x) {
  static_cast<T>(x + x);
};
template <class T>
concept Multiplied = Summed<T> && requires(const T& x) {
  static_cast<T>(x * x);
};
template <class T>
concept Compared = Summed<T> && Ordered<T>;

/// A mean of whole numbers is none.
template <class T>
concept Averaged = Summed<T> && !std::is_integral_v<T> && requires(const T& x) {
  static_cast<T>(x / static_cast<typename real_of<T>::type>(2.0F));
};

/// What can be done with the elements of type T.
template <class T>
struct ElementsOf {
  static bool reduces([[maybe_unused]] Reduction by) noexcept {
    switch (by) {
      case Reduction::sum:
        return Summed<T>;
      case Reduction::prod:
        return Multiplied<T>;
      case Reduction::min:
      case Reduction::max:
        return Compared<T>;
      case Reduction::mean:
        return Averaged<T>;
    }
    return false;
  }

  static void combine(Reduction by, void* so_far, const void* x, std::size_t count) {
    auto* const to = static_cast<T*>(so_far);
    const auto* const from = static_cast<const T*>(x);
    if (by == Reduction::sum || by == Reduction::mean) {
      if constexpr (Summed<T>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] + from[i]);
      }
    } else if (by == Reduction::prod) {
      if constexpr (Multiplied<T>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] * from[i]);
      }
    } else if constexpr (Compared<T>) {
      // A loop for each, since in one for both the compiler would ask which in every turn.
      if (by == Reduction::min) {
        for (std::size_t i = 0; i < count; ++i) to[i] = from[i] < to[i] || is_nan(from[i]) ? from[i] : to[i];
      } else {
        for (std::size_t i = 0; i < count; ++i) to[i] = to[i] < from[i] || is_nan(from[i]) ? from[i] : to[i];
      }
    }
  }

  static void divide(void* sums, std::size_t ranks, std::size_t count) {
    if constexpr (Averaged<T>) {
      auto* const to = static_cast<T*>(sums);
      const auto by = static_cast<typename real_of<T>::type>(static_cast<float>(ranks));
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] / by);
    }
  }
};

template <class T>
inline constexpr ElementType element_type = {.name = &type_name<T>,
                                             .size = sizeof(T),
                                             .kind = std::is_floating_point_v<T> ? ElementType::Kind::floating
                                                     : !std::is_integral_v<T>    ? ElementType::Kind::other
                                                     : std::is_signed_v<T>       ? ElementType::Kind::signed_integer
                                                                                 : ElementType::Kind::unsigned_integer,
                                             .reduces = &ElementsOf<T>::reduces,
                                             .combine = &ElementsOf<T>::combine,
                                             .divide = &ElementsOf<T>::divide};

}  // namespace detail

/// One collective, or one send or recv, as one rank has called it. Borrows the arrays. What communicators of all kinds
/// are asked for.
struct Collective {
  enum class Kind : unsigned char { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, recv, barrier };
  enum class Progress : unsigned char { open, moving, done };

  Kind kind = Kind::barrier;
  Reduction reduction = Reduction::sum;
  const ElementType* type = nullptr;
  const void* from = nullptr;  ///< where its elements are read, if they are
  void* to = nullptr;          ///< where elements are written, if they are; may be where it reads
  MemorySpace from_space = host_memory;
  MemorySpace to_space = host_memory;
  std::size_t count = 0;  ///< elements: of the smaller of the two arrays, if there are two
  std::size_t root = 0;   ///< the rank that has or gets the result, or that this one sends to or gets from
  SmallVector<std::size_t, 4> extents = {};  ///< of the array with `count` elements
  std::string leaf = {};               ///< where the array stands in the tree that was given, if it is not all of it
  std::size_t leaves = 1;              ///< how many arrays that tree has
  Progress progress = Progress::open;  ///< for who runs it
  bool direct = false;                 ///< run by CollectiveOperations, and not by way of the host's memory

  bool is_between_two() const noexcept { return kind == Kind::send || kind == Kind::recv; }
  bool is_reduction() const noexcept {
    return kind == Kind::reduce || kind == Kind::all_reduce || kind == Kind::reduce_scatter;
  }
  bool reads(std::size_t rank) const noexcept {
    return kind != Kind::recv && kind != Kind::barrier && (kind != Kind::broadcast || rank == root);
  }
  bool writes(std::size_t rank) const noexcept {
    return kind != Kind::send && kind != Kind::barrier && (kind != Kind::reduce || rank == root);
  }
  std::size_t bytes() const noexcept { return type == nullptr ? 0 : count * type->size; }
  std::size_t from_bytes(std::size_t ranks) const noexcept {
    return kind == Kind::reduce_scatter ? ranks * bytes() : bytes();
  }
  std::size_t to_bytes(std::size_t ranks) const noexcept {
    return kind == Kind::all_gather ? ranks * bytes() : bytes();
  }
};

namespace detail {

inline const char* name_of(Reduction by) {
  constexpr const char* names[] = {"sum", "prod", "min", "max", "mean"};
  return names[static_cast<unsigned char>(by)];
}

inline const char* name_of(Collective::Kind kind) {
  constexpr const char* names[] = {"broadcast",      "reduce", "all_reduce", "all_gather",
                                   "reduce_scatter", "send",   "recv",       "barrier"};
  return names[static_cast<unsigned char>(kind)];
}

}  // namespace detail

/// `all_reduce(sum) of float[2, 3] at tree.weight`, `send of int[4] to rank 1`.
inline std::string to_string(const Collective& call) {
  using Kind = Collective::Kind;
  std::string text = detail::name_of(call.kind);
  if (call.kind == Kind::barrier) return text;
  if (call.is_reduction()) text += std::string("(") + detail::name_of(call.reduction) + ")";
  text += " of " + call.type->name();
  for (std::size_t axis = 0; axis < call.extents.size(); ++axis) {
    text += (axis == 0 ? "[" : ", ") + std::to_string(call.extents[axis]);
  }
  if (call.extents.size() != 0) text += "]";
  if (!call.leaf.empty()) text += " at " + call.leaf;
  if (call.leaves != 1) text += " (of " + std::to_string(call.leaves) + " arrays)";
  if (call.direct) text += " by the devices";
  if (call.kind == Kind::broadcast || call.kind == Kind::recv) text += " from rank " + std::to_string(call.root);
  if (call.kind == Kind::reduce || call.kind == Kind::send) text += " to rank " + std::to_string(call.root);
  return text;
}

}  // namespace fanout::inline v0
