// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 {

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

/// Integers have no mean.
template <class T>
concept Averaged = Summed<T> && !std::is_integral_v<T> && requires(const T& x) {
  static_cast<T>(x / static_cast<typename real_of<T>::type>(2.0F));
};

/// The functions of an ElementType for elements of type T.
template <class T>
struct ElementsOf {
  static bool reduces([[maybe_unused]] backend::Reduction by) noexcept {
    switch (by) {
      case backend::Reduction::sum:
        return Summed<T>;
      case backend::Reduction::prod:
        return Multiplied<T>;
      case backend::Reduction::min:
      case backend::Reduction::max:
        return Compared<T>;
      case backend::Reduction::mean:
        return Averaged<T>;
    }
    return false;
  }

  static void reduce(backend::Reduction by, void* to, const backend::RankElements& from, std::size_t count) {
    auto* const result = static_cast<T*>(to);
    if (by == backend::Reduction::sum || by == backend::Reduction::mean) {
      if constexpr (Summed<T>) add(by == backend::Reduction::mean, result, from, count);
    } else if (by == backend::Reduction::prod) {
      if constexpr (Multiplied<T>) {
        accumulate(
            result, from, count, [](auto& so_far, const auto& x) { so_far = product(so_far, x); }, keep());
      }
    } else if constexpr (Compared<T>) {
      // One loop each: one loop for both would test the reduction for every element.
      if (by == backend::Reduction::min) {
        fold(result, from, 0, count, [](T& so_far, const T& x) { so_far = x < so_far || is_nan(x) ? x : so_far; });
      } else {
        fold(result, from, 0, count, [](T& so_far, const T& x) { so_far = so_far < x || is_nan(x) ? x : so_far; });
      }
    }
  }

 private:
  static auto keep() {
    return [](auto&) {};
  }
  template <class A>
  static A product(const A& a, const A& b) {
    return static_cast<A>(product_of(a, b));
  }
  template <class A>
  static A sum(const A& a, const A& b) {
    return static_cast<A>(sum_of(a, b));
  }

  static void add([[maybe_unused]] bool mean, T* to, const backend::RankElements& from, std::size_t count) {
    const auto next = [](auto& so_far, const auto& x) { so_far = sum(so_far, x); };
    if constexpr (Averaged<T>) {
      if (mean) {
        return accumulate(to, from, count, next, [ranks = from.ranks](auto& x) {
          using A = std::remove_reference_t<decltype(x)>;
          x = static_cast<A>(x / static_cast<typename real_of<A>::type>(static_cast<float>(ranks)));
        });
      }
    }
    accumulate(to, from, count, next, keep());
  }

  /// Combines all ranks by `next(so_far, x)`, then calls `finish(so_far)`. Computes in the wide type, except for floats
  /// of few ranks.
  template <class Next, class Finish>
  static void accumulate(T* to, const backend::RankElements& from, std::size_t count, const Next& next,
                         const Finish& finish) {
    using A = wide_t<T>;
    if constexpr (!std::same_as<A, T>) {
      if (!std::same_as<typename real_of<T>::type, float> || from.ranks > added_as_floats) {
        constexpr std::size_t block = 256;
        A wide[block];
        for (std::size_t begin = 0; begin < count; begin += block) {
          const std::size_t size = count - begin < block ? count - begin : block;
          fold(wide, from, begin, size, next);
          for (std::size_t i = 0; i < size; ++i) {
            finish(wide[i]);
            to[begin + i] = narrowed<T>(wide[i]);
          }
        }
        return;
      }
    }
    fold(to, from, 0, count, next);
    for (std::size_t i = 0; i < count; ++i) finish(to[i]);
  }

  /// Combines `count` elements of all ranks, from element `begin` on.
  template <class A, class Next>
  static void fold(A* so_far, const backend::RankElements& from, std::size_t begin, std::size_t count,
                   const Next& next) {
    for (std::size_t rank = 0; rank < from.ranks; ++rank) {
      const T* const x = static_cast<const T*>(from[rank]) + begin;
      if (rank == 0) {
        for (std::size_t i = 0; i < count; ++i) so_far[i] = widened<A>(x[i]);
      } else {
        for (std::size_t i = 0; i < count; ++i) next(so_far[i], widened<A>(x[i]));
      }
    }
  }
};

template <class T>
inline constexpr backend::ElementType element_type = {.name = &type_name<T>,
                                                      .size = sizeof(T),
                                                      .kind = element_kind<T>,
                                                      .reduces = &ElementsOf<T>::reduces,
                                                      .reduce = &ElementsOf<T>::reduce};

}  // namespace detail

namespace backend {

/// One collective, send or recv, as one rank has called it. Borrows the arrays. Communicators of all kinds run lists of
/// these.
struct Collective {
  enum class Kind : unsigned char { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, recv, barrier };
  enum class Progress : unsigned char { open, moving, done };

  Kind kind = Kind::barrier;
  Reduction reduction = Reduction::sum;
  const ElementType* type = nullptr;
  const void* from = nullptr;  ///< source of the rank's elements, if it has one
  void* to = nullptr;          ///< destination, if it has one; may equal `from`
  MemorySpace from_space = host_memory;
  MemorySpace to_space = host_memory;
  std::size_t count = 0;                             ///< number of elements; of two arrays, that of the smaller one
  std::size_t root = 0;                              ///< the root, or the other rank of a send or recv
  double weight = 1;                                 ///< factor of the rank's elements in a direct sum
  detail::SmallVector<std::size_t, 4> extents = {};  ///< of the array with `count` elements, rows first
  std::string leaf = {};                             ///< path of the array in its tree; empty if it is the whole tree
  std::size_t leaves = 1;                            ///< number of arrays of that tree; 0 if it has none
  Progress progress = Progress::open;                ///< written by the rendezvous
  bool direct = false;                               ///< run by a CollectiveTransport, not through host memory

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

}  // namespace backend

namespace detail {

inline const char* name_of(backend::Reduction by) {
  constexpr const char* names[] = {"sum", "prod", "min", "max", "mean"};
  return names[static_cast<unsigned char>(by)];
}

inline const char* name_of(backend::Collective::Kind kind) {
  constexpr const char* names[] = {"broadcast",      "reduce", "all_reduce", "all_gather",
                                   "reduce_scatter", "send",   "recv",       "barrier"};
  return names[static_cast<unsigned char>(kind)];
}

}  // namespace detail

namespace backend {

/// `all_reduce(sum) of float[2, 3] at tree.weight`, `send of int[4] to rank 1`.
FANOUT_INLINE std::string to_string(const Collective& call);

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/collective.ipp>
#endif
