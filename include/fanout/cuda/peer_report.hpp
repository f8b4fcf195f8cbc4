// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// The links between all pairs of visible GPUs: element `from * device_count() + to` is the link of that pair, a GPU
/// and itself included. Checks pairs that were not checked yet: that makes the contexts of all GPUs if there are two or
/// more, and takes some milliseconds per pair. Empty without a GPU. Throws DeviceLost and CudaError.
FANOUT_INLINE std::vector<PeerLink> peer_links();

/// peer_links() as text: a matrix, one row per source GPU and one column per destination, of `direct` or `staged`
/// copies. Below it, the reason for each staged pair. Waits and throws as peer_links().
FANOUT_INLINE std::string peer_report();

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/peer_report.ipp>
#endif
