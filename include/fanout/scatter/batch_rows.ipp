// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/scatter/batch_rows.hpp>

#include <cstddef>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void RefuseRows::operator()(std::size_t found, const LeafPath& path) {
  if (!rows) {
    rows = found;
    first = to_string(path);
  } else if (found != *rows) {
    throw ShapeMismatch(explain({.what = "arguments have different numbers of rows",
                                 .where = Text() << first << " and " << path,
                                 .expected = "the same number of rows in every array that is split",
                                 .found = Text() << *rows << " and " << found,
                                 .advice = "pass broadcast(x) if every replica needs all of it, rows(v) for a vector "
                                           "whose elements are the rows, each(v) for a vector that is a list"}));
  }
}

void RefuseRows::operator()(const Plan& found, const LeafPath& path) {
  (*this)(found.rows(), path);
  if (plan == nullptr) {
    plan = &found;
    first_sharded = to_string(path);
  } else if (!(found == *plan)) {
    throw ShapeMismatch(explain({.what = "arguments are sharded in different ways",
                                 .where = Text() << first_sharded << " and " << path,
                                 .expected = "results of calls with the same plan",
                                 .found = Text() << *plan << " and " << found,
                                 .advice = "gather() one of them"}));
  }
}

}}}  // namespace fanout::v0::detail
