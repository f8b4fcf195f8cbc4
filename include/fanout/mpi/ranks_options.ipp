// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/ranks_options.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::string described(const mpi::RanksOptions& options) {
  std::string text = "mpi::Ranks with .reduce = ";
  text += options.reduce == mpi::by_library ? "by_library" : "in_rank_order";
  if (options.gpu_aware) text += ", .gpu_aware = true";
  if (options.survive) text += ", .survive = true";
  if (!(options.deadline == Duration::forever())) text += ", with a deadline";
  return text;
}

}}}  // namespace fanout::v0::detail
