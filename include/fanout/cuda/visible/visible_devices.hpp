// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/visible/visible_token.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// A GPU of the machine, visible or not, as input of parse_visible_devices().
struct PhysicalGpu {
  /// `GPU-` and hexadecimal digits, as nvidia-smi prints it.
  std::string uuid;
  std::string name = {};
  /// Any measure of speed in one unit for all GPUs: more is faster.
  double speed = 0;
};

/// What CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER select of the machine's GPUs.
struct VisibleDevices {
  /// The two variables; nullopt if unset.
  std::optional<std::string> variable;
  std::optional<std::string> order;
  /// True if GPUs are counted by PCI bus id, as nvidia-smi does; false if from the fastest on.
  bool by_bus_id = false;
  /// The entries of the list, in order. Empty if the variable is unset or empty.
  std::vector<VisibleToken> tokens;
  /// For each device, its GPU, as in VisibleToken::gpu. The size is the number of devices.
  std::vector<int> gpus;
};

namespace detail {

/// The positions of the GPUs, in the order in which the numbers of a list count them.
FANOUT_INLINE std::vector<int> counted_gpus(const std::vector<PhysicalGpu>& machine, bool by_bus_id);

inline std::string_view without_spaces_around(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

/// The number at the start of a token, as strtoul reads it: text behind the digits is ignored, and overflow gives the
/// largest number. Sets `fate` if there is no number, or if it is negative.
FANOUT_INLINE std::uint64_t leading_number(std::string_view text, VisibleToken::Fate& fate);

/// The position of the only GPU whose uuid starts with `prefix`. Returns -1 and sets `fate` if there is none, or more
/// than one.
FANOUT_INLINE int gpu_with_uuid(std::string_view prefix, const std::vector<PhysicalGpu>& machine,
                                VisibleToken::Fate& fate);

/// Calls `look` for each token until one ends the list. If two tokens are the same, the whole list becomes empty.
template <class Look, class Same>
void walk_tokens(std::vector<VisibleToken>& tokens, const Look& look, const Same& same) {
  using Fate = VisibleToken::Fate;
  for (std::size_t i = 0; i < tokens.size() && tokens[i].fate == Fate::device; ++i) {
    look(i);
    if (tokens[i].ends_list()) {
      for (std::size_t k = i + 1; k < tokens.size(); ++k) tokens[k].fate = Fate::behind_end;
      return;
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (!same(i, k)) continue;
      for (VisibleToken& token : tokens) token.fate = Fate::emptied;
      tokens[i].fate = tokens[k].fate = Fate::repeated;
      return;
    }
  }
}

/// Reads a list of numbers: first the numbers, then the GPUs. So a repeated number empties the list even if it follows
/// a number without a GPU.
FANOUT_INLINE void read_numbers(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine,
                                bool by_bus_id);

/// Reads a list of uuids, all of GPUs or all of MIG instances, in the same two steps. Spaces are not stripped here.
FANOUT_INLINE void read_uuids(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine, bool mig);

/// The GPU of a MIG instance named MIG-GPU-<uuid>/<gpu instance>/<compute instance>. Returns -1 for MIG-<uuid>, which
/// has a uuid of its own.
inline int gpu_of_mig(std::string_view text, const std::vector<PhysicalGpu>& machine) {
  VisibleToken::Fate fate{};
  const std::string_view uuid = text.substr(4, text.find('/') - 4);
  return uuid.starts_with("GPU-") ? gpu_with_uuid(uuid, machine, fate) : -1;
}

FANOUT_INLINE std::vector<VisibleToken> split_tokens(std::string_view text);

FANOUT_INLINE VisibleDevices read_visible_devices(const char* variable, const char* order,
                                                  const std::vector<PhysicalGpu>* machine);

}  // namespace detail

/// Returns what the two variables (null: unset) select of the machine's GPUs, which are given in the order of their PCI
/// bus ids. Reads neither the environment nor the CUDA runtime, so it works for any machine.
///
/// 1. If the variable is unset, all GPUs are visible; if it is empty, none. Otherwise it is a list, and device i is
///    what token i names. The first token that names no GPU ends the list. A GPU that is named twice empties the list.
/// 2. A token is a number as strtoul reads it, spaces around it allowed. If the list starts with `GPU-`, a token is the
///    start of one GPU's uuid. If it starts with `MIG-`, a token is a MIG instance, and CUDA shows only the first.
/// 3. Numbers count the GPUs from the fastest on, and equal ones in bus order. If the order is PCI_BUS_ID, they count
///    in bus order. CUDA does not document how it measures speed: this uses PhysicalGpu::speed.
inline VisibleDevices parse_visible_devices(const char* variable, const char* order,
                                            const std::vector<PhysicalGpu>& machine) {
  return detail::read_visible_devices(variable, order, &machine);
}

/// The same if the GPUs are unknown. Only the text counts: each token that may be a device is one, and
/// VisibleToken::gpu is -1. If the variable is unset, the result has no devices.
inline VisibleDevices parse_visible_devices(const char* variable, const char* order) {
  return detail::read_visible_devices(variable, order, nullptr);
}

/// The GPU of a device, as its position on the bus; -1 if unknown. Throws InvalidDeviceId, with the variable's text, if
/// there is no such device.
FANOUT_INLINE int gpu_of(const VisibleDevices& devices, int device);

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/visible/visible_devices.ipp>
#endif
