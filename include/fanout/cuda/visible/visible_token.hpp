// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>

#include <fanout/base/separate_compilation.hpp>

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

FANOUT_INLINE const char* why(VisibleToken::Fate fate);

}  // namespace detail

/// `"3" is device 0`, `"abc" ends the list: it does not begin with a number`.
inline std::string to_string(const VisibleToken& token) {
  const std::string text = '"' + token.text + "\" ";
  return text + (token.device >= 0 ? "is device " + std::to_string(token.device) : detail::why(token.fate));
}

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/visible/visible_token.ipp>
#endif
