// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/visible/visible_devices.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The value of the line `name: value` of a text; empty if there is no such line.
FANOUT_INLINE std::string value_in(std::string_view text, std::string_view name);

FANOUT_INLINE std::string text_of_file(const std::string& path);

/// The GPUs that this process could open, in the order of their PCI bus ids. Read from the folders of the Linux driver,
/// one per GPU, since CUDA reports only visible ones. Returns nullopt if there are no such folders, as in many
/// containers, or if a uuid is not known yet.
FANOUT_INLINE std::optional<std::vector<PhysicalGpu>> gpus_on_bus(
    const std::string& folder = "/proc/driver/nvidia/gpus", const std::string& nodes = "/dev/nvidia");

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/visible/gpus_on_bus.ipp>
#endif
