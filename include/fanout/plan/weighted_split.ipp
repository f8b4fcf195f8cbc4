// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/weighted_split.hpp>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_weight(std::size_t position, double weight) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", weight);
  throw InvalidArgument(explain({.what = "invalid weight",
                                 .where = Text() << "WeightedSplit, position " << position,
                                 .expected = "a finite number that is not negative",
                                 .found = text}));
}

void refuse_weights_without_sum(std::size_t size) {
  throw InvalidArgument(explain({.what = "weights that add up to nothing",
                                 .where = "WeightedSplit",
                                 .expected = "at least one weight above zero",
                                 .found = size == 0 ? "no weights" : "only zeros (" + std::to_string(size) + ')'}));
}

void refuse_number_of_weights(const char* split, std::size_t weights, std::size_t devices) {
  throw InvalidArgument(explain({.what = "wrong number of weights",
                                 .where = split,
                                 .expected = Text() << "one for each of the " << devices << " devices",
                                 .found = Text() << weights}));
}

}}}  // namespace fanout::v0::detail
