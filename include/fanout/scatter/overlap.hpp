// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 {

// Finds an argument that shards write while another argument shows the same memory: a shard could read what another one
// writes.

namespace detail {

/// The memory of one array, from its first element to its last.
struct ShownMemory {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::size_t rows = 0;
  MemorySpace space = host_memory;
  bool by_rows = false;    ///< each shard receives its own rows
  bool written = false;    ///< shards write it while others run
  void* target = nullptr;  ///< where they write, if it is a tensor of a destination

  bool overlaps(const ShownMemory& other) const noexcept {
    return begin < other.begin + other.bytes && other.begin < begin + bytes && bytes != 0 && other.bytes != 0 &&
           space == other.space;
  }
  bool is_row_for_row(const ShownMemory& other) const noexcept {
    return by_rows && other.by_rows && begin == other.begin && bytes == other.bytes && rows == other.rows;
  }
};

/// No lambda of shown_by(): nvcc takes the requires-expression for an error there.
template <class X, class T>
ShownMemory shown_elements(const X& x, const T* data, std::size_t count) {
  ShownMemory shown{.begin = reinterpret_cast<std::uintptr_t>(data), .bytes = count * sizeof(T)};
  shown.rows = count == 0 ? 0 : leaf_traits<X>::rows(x);
  if constexpr (requires { MemorySpace(x.space()); }) shown.space = x.space();
  return shown;
}

/// Returns the memory of an array. Empty if the leaf does not tell where its elements are.
template <ArrayLeaf X>
ShownMemory shown_by(const X& x) {
  if constexpr (requires { leaf_traits<X>::bytes(x); }) {
    const auto bytes = leaf_traits<X>::bytes(x);
    return shown_elements(x, bytes.data(), bytes.size());
  } else if constexpr (is_strided_view<X>) {
    std::size_t last = 0;
    for (std::size_t axis = 0; axis < X::rank && !x.empty(); ++axis) last += (x.extent(axis) - 1) * x.stride(axis);
    return shown_elements(x, x.data(), x.empty() ? 0 : last + 1);
  } else if constexpr (requires { sizeof(*x.data()), x.extents().size(); }) {
    return shown_elements(x, x.data(), x.extents().size());
  } else if constexpr (requires { sizeof(*x.data()), std::size_t{x.size()}; }) {
    return shown_elements(x, x.data(), x.size());
  } else {
    return {};
  }
}

/// For visit_arrays(): calls `f(memory, path)` for each array of an argument, also inside broadcast(), split() and the
/// like.
template <class F>
struct VisitShown {
  F& f;
  bool by_rows = true;

  template <class X>
  void operator()(const X& x, const LeafPath& path) const {
    if constexpr (is_inout<X>) {
      show(x.value, path, true);
    } else if constexpr (is_sharded<X>) {
      for (std::size_t i = 0; i < x.size(); ++i) visit_arrays(x[i], LeafPath(path, i), VisitShown{f, false});
    } else if constexpr (requires { visit_arrays(x.value, path, *this); }) {
      visit_arrays(x.value, path, VisitShown{f, by_rows && splits_by_rows<X>});
    } else if constexpr (ArrayLeaf<X>) {
      show(x, path, false);
    }
  }

 private:
  template <class X>
  void show(const X& x, const LeafPath& path, bool written) const {
    ShownMemory memory = shown_by(x);
    memory.by_rows = by_rows;
    memory.written = written;
    f(memory, path);
  }
};

template <class F, std::size_t... I, class... Args>
void visit_shown_in([[maybe_unused]] F& f, std::index_sequence<I...>, const Args&... args) {
  (visit_arrays(args, input_path<I>, VisitShown<F>{f}), ...);
}
template <class F, class... Args>
void visit_shown(F& f, const Args&... args) {
  visit_shown_in(f, std::index_sequence_for<Args...>(), args...);
}

/// Lists the memory of arrays.
struct ListShown {
  SmallVector<ShownMemory>& shown;
  void operator()(const ShownMemory& memory, const LeafPath&) const { shown.push_back(memory); }
};

/// Two arrays of one call that must not overlap, but do: the positions of a written one in its list, and of another one
/// in its list.
struct Overlap {
  bool found = false;
  std::size_t written = 0;
  std::size_t other = 0;
};

/// Finds an array that shards write and that overlaps another one, which may be in the same list. Overlaps for which
/// `allowed(written, other)` is true do not count.
template <class Allowed>
Overlap find_overlap(const SmallVector<ShownMemory>& written, const SmallVector<ShownMemory>& others,
                     const Allowed& allowed) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (std::size_t k = 0; k < others.size() && written[i].written; ++k) {
      if (&written[i] == &others[k]) continue;
      if (written[i].overlaps(others[k]) && !allowed(written[i], others[k])) return {true, i, k};
    }
  }
  return {};
}

/// Finds the path of the n-th array.
struct NameShown {
  std::size_t n;
  std::string name = {};

  void operator()(const ShownMemory&, const LeafPath& path) {
    if (n-- == 0) name = to_string(path);
  }
};

template <class... Args>
std::string name_of_shown(std::size_t n, const Args&... args) {
  NameShown named{n};
  visit_shown(named, args...);
  return named.name;
}

[[noreturn]] inline void refuse_written(const std::string& one, const std::string& other) {
  throw InvalidArgument(explain({.what = "two arguments overlap in memory, and shards write one of them",
                                 .where = Text() << one << " and " << other,
                                 .expected = "no overlap with inout(x), or the same rows of both",
                                 .advice = "pass a copy of the argument that is only read"}));
}

/// The addresses from the first byte of several arrays to the last, gaps included.
struct ShownHull {
  std::uintptr_t begin = ~std::uintptr_t{0};
  std::uintptr_t end = 0;
  std::size_t arrays = 0;

  void add(const ShownMemory& shown) noexcept {
    begin = shown.begin < begin ? shown.begin : begin;
    end = shown.begin + shown.bytes > end ? shown.begin + shown.bytes : end;
    ++arrays;
  }
  bool touches(const ShownMemory& shown) const noexcept {
    return shown.begin < end && begin < shown.begin + shown.bytes;
  }
};

struct AddWritten {
  ShownHull& hull;
  void operator()(const ShownMemory& shown, const LeafPath&) const {
    if (shown.written) hull.add(shown);
  }
};
struct CountTouching {
  const ShownHull& hull;
  std::size_t touching = 0;
  void operator()(const ShownMemory& shown, const LeafPath&) { touching += hull.touches(shown) ? 1U : 0U; }
};

template <class... Args>
[[gnu::cold, gnu::noinline]] void compare_written(const Args&... args) {
  SmallVector<ShownMemory> shown;
  ListShown list{shown};
  visit_shown(list, args...);
  const auto allowed = [](const ShownMemory& one, const ShownMemory& other) { return one.is_row_for_row(other); };
  const Overlap overlap = find_overlap(shown, shown, allowed);
  if (!overlap.found) return;
  const bool in_order = overlap.written < overlap.other;
  refuse_written(name_of_shown(in_order ? overlap.written : overlap.other, args...),
                 name_of_shown(in_order ? overlap.other : overlap.written, args...));
}

/// Throws InvalidArgument, which names both, if an inout() overlaps another argument, unless both are the same rows.
/// Costs nothing without an inout().
template <class... Args>
void check_written(const Args&... args) {
  if constexpr (has_inout<Args...>) {
    ShownHull hull;
    AddWritten add{hull};
    visit_shown(add, args...);
    CountTouching count{hull};
    visit_shown(count, args...);
    if (count.touching > 1 || hull.arrays > 1) compare_written(args...);
  }
}

}  // namespace detail
}}  // namespace fanout::v0
