// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/visible/visible_devices.hpp>

#include <utility>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

std::vector<int> counted_gpus(const std::vector<PhysicalGpu>& machine, bool by_bus_id) {
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

std::uint64_t leading_number(std::string_view text, VisibleToken::Fate& fate) {
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

int gpu_with_uuid(std::string_view prefix, const std::vector<PhysicalGpu>& machine, VisibleToken::Fate& fate) {
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

void read_numbers(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine, bool by_bus_id) {
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

void read_uuids(std::vector<VisibleToken>& tokens, const std::vector<PhysicalGpu>* machine, bool mig) {
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

std::vector<VisibleToken> split_tokens(std::string_view text) {
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

VisibleDevices read_visible_devices(const char* variable, const char* order, const std::vector<PhysicalGpu>* machine) {
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

}}}}  // namespace fanout::v0::cuda::detail
namespace fanout { inline namespace v0 { namespace cuda {

int gpu_of(const VisibleDevices& devices, int device) {
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
