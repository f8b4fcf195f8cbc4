// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>

namespace fanout { inline namespace v0 { namespace cuda {

/// One entry of CUDA_VISIBLE_DEVICES, and what became of it.
struct VisibleToken {
  enum class Fate {
    device,        // it became one
    no_number,     // this and the next six end the list
    negative,      //
    out_of_range,  // a number, of which there is no card
    no_uuid,       // in a list that began with a uuid
    no_mig,        // in a list that began with a MIG instance
    unknown,       // the uuid of no card
    ambiguous,     // the beginning of more than one card's uuid
    behind_end,    // something before it ended the list
    repeated,      // it names what another one names, which makes the list empty
    emptied,       // two others did
    second_mig,    // CUDA shows one MIG instance alone
  };
  /// As it was written.
  std::string text;
  Fate fate = Fate::device;
  /// The index of the device that the program sees; -1 if it is none.
  int device = -1;
  /// The card that it names, by its position in the order of PCI bus ids; -1 if that is not known, or it is no device.
  int card = -1;

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
      return "ends the list: there is no card of that number";
    case Fate::no_uuid:
      return "ends the list: the list began with GPU-, and this does not";
    case Fate::no_mig:
      return "ends the list: the list began with MIG-, and this does not";
    case Fate::unknown:
      return "ends the list: no card's uuid begins like this";
    case Fate::ambiguous:
      return "ends the list: the uuids of several cards begin like this";
    case Fate::behind_end:
      return "is not read: it stands behind the end of the list";
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
