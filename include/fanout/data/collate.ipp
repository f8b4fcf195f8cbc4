// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/data/collate.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_samples(const char* what, const LeafPath& path, std::size_t i, std::string expected, std::string found) {
  throw StructureMismatch(explain({.what = std::string("the samples of a batch ") + what,
                                   .where = to_string(path),
                                   .expected = std::move(expected) + " as in sample 0 of the batch",
                                   .found = std::move(found) + " in sample " + std::to_string(i),
                                   .advice = "give the loader a collate function"}));
}

}}}  // namespace fanout::v0::detail
