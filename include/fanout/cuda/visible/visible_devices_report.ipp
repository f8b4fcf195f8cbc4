// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/visible/visible_devices_report.hpp>

#include <cstdio>
#include <cstdlib>

#include <fanout/cuda/runtime/availability.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

SeenDevice seen_device(const cudaDeviceProp& properties) {
  std::string uuid = "GPU";
  for (std::size_t i = 0; i < 16; ++i) {
    char digits[4];
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
    uuid += digits;
  }
  char bus_id[64];
  std::snprintf(bus_id, sizeof bus_id, "%04x:%02x:%02x.0", static_cast<unsigned>(properties.pciDomainID),
                static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
  return {.uuid = uuid, .name = properties.name, .bus_id = bus_id};
}

std::string VisibleDevicesReport::text() const {
  // The speed of the GPUs is unknown here. It decides which GPU a number names, but not how many devices there are or
  // where the list ends. CUDA says which GPU a device is.
  const VisibleDevices read = read_visible_devices(variable, order, machine ? &*machine : nullptr);
  return variable_line() + device_lines(read) + order_line() + count_line() + hidden_lines(read) + change_lines(read);
}

std::string VisibleDevicesReport::variable_line() const {
  const std::string text = variable == nullptr ? "" : variable;
  if (variable == nullptr) return "CUDA_VISIBLE_DEVICES is unset: every GPU is visible.\n";
  if (text.empty()) return "CUDA_VISIBLE_DEVICES is empty: no GPU is visible.\n";
  return "CUDA_VISIBLE_DEVICES is \"" + text + "\":\n";
}

std::string VisibleDevicesReport::device_lines(const VisibleDevices& read) const {
  std::string lines;
  for (const VisibleToken& token : read.tokens) lines += "  " + token_text(token) + '\n';
  for (std::size_t i = variable == nullptr ? 0 : read.gpus.size(); i < seen_count(); ++i) {
    lines += "  device " + std::to_string(i) + ": " + text_of((*seen)[i]) + '\n';
  }
  return lines;
}

std::string VisibleDevicesReport::token_text(const VisibleToken& token) const {
  if (token.device < 0) return to_string(token);
  const auto device = static_cast<std::size_t>(token.device);
  if (device < seen_count()) return to_string(token) + ": " + text_of((*seen)[device]);
  std::string by_text = '"' + token.text + "\" would be device " + std::to_string(token.device);
  if (!seen || machine) return by_text;
  if (device > seen_count()) return '"' + token.text + "\" comes after it";
  return by_text + ", which CUDA does not show: most likely there is no such GPU, and the list ends here";
}

std::string VisibleDevicesReport::order_line() const {
  const std::string name = order == nullptr ? "" : order;
  const std::string line = "CUDA_DEVICE_ORDER is " + (order == nullptr ? "unset" : '"' + name + '"');
  if (name == "PCI_BUS_ID") return line + ": numbers count the GPUs as they stand on the bus, as nvidia-smi does.\n";
  return line + (order == nullptr || name == "FASTEST_FIRST" ? "" : ", which CUDA does not know") +
         ": numbers count the GPUs from the fastest on (FASTEST_FIRST), but nvidia-smi counts them as they stand on "
         "the bus (PCI_BUS_ID).\n";
}

std::string VisibleDevicesReport::hidden_lines(const VisibleDevices& read) const {
  if (!machine && variable == nullptr) return {};
  if (!machine) return "The other GPUs of the machine are unknown: CUDA shows only the visible ones.\n";
  std::string lines;
  for (std::size_t i = 0; i < machine->size() && !lists_mig(read); ++i) {
    const PhysicalGpu& gpu = (*machine)[i];
    bool hidden = true;
    for (std::size_t k = 0; k < seen_count(); ++k) hidden = hidden && (*seen)[k].uuid != gpu.uuid;
    if (hidden) lines += "Not visible: GPU " + std::to_string(i) + " on the bus, " + gpu.name + ", " + gpu.uuid + ".\n";
  }
  return lines;
}

bool VisibleDevicesReport::differs(const VisibleDevices& read) const {
  if (!seen || lists_mig(read) || (variable == nullptr && !machine)) return false;
  if (seen_count() > read.gpus.size() || (machine && seen_count() < read.gpus.size())) return true;
  for (const VisibleToken& token : read.tokens) {
    if (token.device < 0 || !token.text.starts_with("GPU-")) continue;
    const auto device = static_cast<std::size_t>(token.device);
    if (device < seen_count() && !(*seen)[device].uuid.starts_with(token.text)) return true;
  }
  return false;
}

std::string VisibleDevicesReport::change_lines(const VisibleDevices& read) const {
  std::string line = "CUDA reads these variables at its first use in a process; changing them later does nothing.\n";
  if (!differs(read)) return line;
  return line +
         "CUDA shows other devices than these variables name: they were changed too late, a GPU cannot be used, or "
         "CUDA reads them in another way.\n";
}

}}}}  // namespace fanout::v0::cuda::detail
namespace fanout { inline namespace v0 { namespace cuda {

std::string visible_devices_report() {
  detail::VisibleDevicesReport report{.variable = std::getenv("CUDA_VISIBLE_DEVICES"),
                                      .order = std::getenv("CUDA_DEVICE_ORDER"),
                                      .machine = detail::gpus_on_bus(),
                                      .seen = {},
                                      .reason = unavailable_reason()};
  const detail::GpuCount known = detail::count_gpus();
  if (known.status == cudaSuccess || known.status == cudaErrorNoDevice) report.seen = std::vector<detail::SeenDevice>();
  for (int i = 0; i < known.count; ++i) {
    report.seen->push_back(detail::seen_device(detail::gpu_at(i).properties()));
  }
  return report.text();
}

}}}  // namespace fanout::v0::cuda
