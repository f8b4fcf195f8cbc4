// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/maybe.hpp>
#include <fanout/parallel/splitting.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Takes the rows of the first array, and notes whether all others have as many; and the plan by which an argument is
/// split already.
struct CountRows {
  Maybe<std::size_t> rows = {};
  const Plan* plan = nullptr;
  bool agree = true;

  void operator()(std::size_t found, const LeafPath&) {
    if (!rows) rows = found;
    agree = agree && found == *rows;
  }
  void operator()(const Plan& found, const LeafPath& path) {
    if (plan == nullptr) plan = &found;
    agree = agree && found == *plan;
    (*this)(found.rows(), path);
  }
};

/// Finds the first array that does not fit to the one before all others, and throws with the places of both.
struct RefuseRows {
  Maybe<std::size_t> rows = {};
  std::string first = {};
  const Plan* plan = nullptr;
  std::string first_sharded = {};

  template <std::same_as<LeafPath> Path>
  void operator()(std::size_t found, const Path& path) {
    if (!rows) {
      rows = found;
      first = to_string(path);
    } else if (found != *rows) {
      throw ShapeMismatch(explain({.what = "arguments have different numbers of rows",
                                   .where = first + " and " + to_string(path),
                                   .expected = "as many rows in every array that is split",
                                   .found = std::to_string(*rows) + " and " + std::to_string(found),
                                   .advice = "pass broadcast(x) for what every replica needs whole"}));
    }
  }
  template <std::same_as<LeafPath> Path>
  void operator()(const Plan& found, const Path& path) {
    (*this)(found.rows(), path);
    if (plan == nullptr) {
      plan = &found;
      first_sharded = to_string(path);
    } else if (!(found == *plan)) {
      throw ShapeMismatch(explain({.what = "arguments are sharded in different ways",
                                   .where = first_sharded + " and " + to_string(path),
                                   .expected = "results of calls with the same plan",
                                   .found = to_string(*plan) + " and " + to_string(found),
                                   .advice = "gather() one of them"}));
    }
  }
};

template <class F, std::size_t... I, class... Args>
void visit_arguments([[maybe_unused]] F& f, [[maybe_unused]] int axis, std::index_sequence<I...>, const Args&... args) {
  (visit_rows(args, axis, input_path<I>, f), ...);
}

/// Throws, naming two arguments that do not agree.
template <class... Args>
[[gnu::cold, gnu::noinline]] void refuse_rows(int axis, const Args&... args) {
  RefuseRows refuse;
  visit_arguments(refuse, axis, std::index_sequence_for<Args...>(), args...);
}

/// Throws ShapeMismatch, naming two arguments that do not agree.
template <class... Args>
CountRows count_rows(int axis, const Args&... args) {
  CountRows count;
  visit_arguments(count, axis, std::index_sequence_for<Args...>(), args...);
  if (!count.agree) refuse_rows(axis, args...);
  return count;
}

}  // namespace detail

/// The rows of one call: what the arrays among the arguments agree on; none if there is no array to split. Throws
/// ShapeMismatch, naming two that do not agree.
template <class... Args>
Maybe<std::size_t> batch_rows(const Args&... args) {
  return detail::count_rows(0, args...).rows;
}

}  // namespace fanout::inline v0
