// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
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
inline std::vector<int> counted_gpus(const std::vector<PhysicalGpu>& machine, bool by_bus_id) {
  std::vector<int> counted;
  for (std::size_t i = 0; i < machine.size(); ++i) {
    counted.push_back(static_cast<int>(i));
    for (std::size_t k = i; k > 0 && !by_bus_id; --k) {
      if (!(machine[static_cast<std::size_t>(counted[k - 1])].speed < machine[i].speed))
        break;  // equal ones stay in order
      std::swap(counted[k - 1], counted[k]);
    }
  }
  return counted;
}

inline std::string_view without_spaces_around(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

/// The number at the start of a token, as strtoul reads it: text behind the digits is ignored, and overflow gives the
/// largest number. Sets `fate` if there is no number, or if it is negative.
inline std::uint64_t leading_number(std::string_view text, VisibleToken::Fate& fate) {
  text = without_spaces_around(text);
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    const auto digit = static_cast<std::uint64_t>(text[digits] - '0');
    number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : 10 * number + digit;
  }
  if (digits == 0) fate = VisibleToken::Fate::no_number;
  if (minus && number > 0) fate = VisibleToken::Fate::negative;
  return number;
}

/// The position of the only GPU whose uuid starts with `prefix`. Returns -1 and sets `fate` if there is none, or more
/// than one.
inline int gpu_with_uuid(std::string_view prefix, const std::vector<PhysicalGpu>& machine, VisibleToken::Fate& fate) {
  int found = -1;
  for (std::size_t i = 0; i < machine.size(); ++i) {
    if (!std::string_view(machine[i].uuid).starts_with(prefix)) continue;
    if (found >= 0) {
      fate = VisibleToken::Fate::ambiguous;
      return -1;
    }
    found = static_cast<int>(i);
  }
  if (found < 0) fate = VisibleToken::Fate::unknown;
  return found;
}

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
inline void read_numbers(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine, bool by_bus_id) {
  std::vector<std::uint64_t> numbers(tokens.size());
  walk_tokens(
      tokens, [&](std::size_t i) { numbers[i] = leading_number(tokens[i].text, tokens[i].fate); },
      [&](std::size_t i, std::size_t k) { return numbers[i] == numbers[k]; });
  if (machine == nullptr) return;
  const std::vector<int> counted = counted_gpus(*machine, by_bus_id);
  walk_tokens(
      tokens,
      [&](std::size_t i) {
        tokens[i].gpu = numbers[i] < counted.size() ? counted[numbers[i]] : -1;
        if (tokens[i].gpu < 0) tokens[i].fate = VisibleToken::Fate::out_of_range;
      },
      [](std::size_t, std::size_t) { return false; });
}

/// Reads a list of uuids, all of GPUs or all of MIG instances, in the same two steps. Spaces are not stripped here.
inline void read_uuids(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine, bool mig) {
  walk_tokens(
      tokens,
      [&](std::size_t i) {
        if (tokens[i].text.starts_with(mig ? "MIG-" : "GPU-")) return;
        tokens[i].fate = mig ? VisibleToken::Fate::no_mig : VisibleToken::Fate::no_uuid;
      },
      [&](std::size_t i, std::size_t k) { return tokens[i].text == tokens[k].text; });
  if (machine == nullptr || mig) return;
  walk_tokens(
      tokens, [&](std::size_t i) { tokens[i].gpu = gpu_with_uuid(tokens[i].text, *machine, tokens[i].fate); },
      [&](std::size_t i, std::size_t k) { return tokens[i].gpu == tokens[k].gpu; });
}

/// The GPU of a MIG instance named MIG-GPU-<uuid>/<gpu instance>/<compute instance>. Returns -1 for MIG-<uuid>, which
/// has a uuid of its own.
inline int gpu_of_mig(std::string_view text, const std::vector<PhysicalGpu>& machine) {
  VisibleToken::Fate fate{};
  const std::string_view uuid = text.substr(4, text.find('/') - 4);
  return uuid.starts_with("GPU-") ? gpu_with_uuid(uuid, machine, fate) : -1;
}

inline std::vector<VisibleToken> split_tokens(std::string_view text) {
  std::vector<VisibleToken> tokens;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    tokens.push_back({.text = std::string(text.substr(0, comma))});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) tokens.push_back({.text = {}});  // a trailing comma is followed by an empty token
  }
  return tokens;
}

inline VisibleDevices read_visible_devices(const char* variable, const char* order,
                                           const std::vector<PhysicalGpu>* machine) {
  VisibleDevices result;
  if (variable != nullptr) result.variable = std::string(variable);
  if (order != nullptr) result.order = std::string(order);
  result.by_bus_id = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  if (variable == nullptr) {
    if (machine != nullptr) result.gpus = counted_gpus(*machine, result.by_bus_id);
    return result;
  }
  const std::string_view text = variable;
  const bool mig = text.starts_with("MIG-");
  result.tokens = split_tokens(text);
  if (mig || text.starts_with("GPU-")) {
    read_uuids(result.tokens, machine, mig);
  } else {
    read_numbers(result.tokens, machine, result.by_bus_id);
  }
  for (VisibleToken& token : result.tokens) {
    if (token.fate != VisibleToken::Fate::device) {
      token.gpu = -1;
    } else if (mig && !result.gpus.empty()) {
      token.fate = VisibleToken::Fate::second_mig;
    } else {
      if (mig && machine != nullptr) token.gpu = gpu_of_mig(token.text, *machine);
      token.device = static_cast<int>(result.gpus.size());
      result.gpus.push_back(token.gpu);
    }
  }
  return result;
}

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
inline int gpu_of(const VisibleDevices& devices, int device) {
  if (device >= 0 && static_cast<std::size_t>(device) < devices.gpus.size()) {
    return devices.gpus[static_cast<std::size_t>(device)];
  }
  throw InvalidDeviceId(
      explain({.what = "device " + std::to_string(device) + " is not visible (CUDA_VISIBLE_DEVICES" +
                       (devices.variable ? '=' + *devices.variable : std::string(" is unset")) + ')',
               .expected = devices.gpus.empty() ? "a visible device, of which there is none"
                                                : "a number from 0 to " + std::to_string(devices.gpus.size() - 1)}));
}

}}}  // namespace fanout::v0::cuda
