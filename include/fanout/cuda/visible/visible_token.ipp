// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/visible/visible_token.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

const char* why(VisibleToken::Fate fate) {
  using Fate = VisibleToken::Fate;
  switch (fate) {
    case Fate::device:
      return "is a device";
    case Fate::no_number:
      return "ends the list: it does not begin with a number";
    case Fate::negative:
      return "ends the list: it is negative";
    case Fate::out_of_range:
      return "ends the list: there is no GPU of that number";
    case Fate::no_uuid:
      return "ends the list: the list began with GPU-, and this does not";
    case Fate::no_mig:
      return "ends the list: the list began with MIG-, and this does not";
    case Fate::unknown:
      return "ends the list: no GPU's uuid begins like this";
    case Fate::ambiguous:
      return "ends the list: the uuids of several GPUs begin like this";
    case Fate::behind_end:
      return "is not read: the list ended before it";
    case Fate::repeated:
      return "is named twice, which makes the whole list empty";
    case Fate::emptied:
      return "is no device: another one is named twice, which makes the whole list empty";
    case Fate::second_mig:
      return "is no device: CUDA shows a process one MIG instance, the first";
  }
  return "";
}

}}}}  // namespace fanout::v0::cuda::detail
