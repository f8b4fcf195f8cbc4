// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>

namespace fanout { inline namespace v0 { namespace cuda {

/// One entry of CUDA_VISIBLE_DEVICES, and what CUDA makes of it.
struct VisibleToken {
  enum class Fate {
    device,        // it is a device
    no_number,     // this and the next six end the list
    negative,      //
    out_of_range,  // no GPU has this number
    no_uuid,       // is no GPU uuid, but the list began with one
    no_mig,        // is no MIG instance, but the list began with one
    unknown,       // no GPU has this uuid
    ambiguous,     // the uuids of several GPUs start like this
    behind_end,    // an earlier token ended the list
    repeated,      // names the same as another token, which empties the list
    emptied,       // the list is empty, since two other tokens are the same
    second_mig,    // CUDA shows only the first MIG instance
  };
  /// The text of the token.
  std::string text;
  Fate fate = Fate::device;
  /// The index of the device in this process; -1 if it is none.
  int device = -1;
  /// The GPU that it names, as its position in the order of PCI bus ids. -1 if that is unknown, or if it is no device.
  int gpu = -1;

  bool ends_list() const noexcept { return fate >= Fate::no_number && fate <= Fate::ambiguous; }
};

namespace detail {

inline const char* why(VisibleToken::Fate fate) {
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

}  // namespace detail

/// `"3" is device 0`, `"abc" ends the list: it does not begin with a number`.
inline std::string to_string(const VisibleToken& token) {
  const std::string text = '"' + token.text + "\" ";
  return text + (token.device >= 0 ? "is device " + std::to_string(token.device) : detail::why(token.fate));
}

}}}  // namespace fanout::v0::cuda
