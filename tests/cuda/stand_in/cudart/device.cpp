// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What devices there are, and which reach which.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "call.hpp"

namespace stand_in { namespace {

bool able(int one, int other) { return one != other && !state().no_peer.contains(std::minmax(one, other)); }

constexpr int pci_bus(const Device& device) { return 0x10 + device.physical; }

}}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  return call(__func__, nothing, [&](Call&) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = state().no_driver ? 0 : CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call(__func__, nothing, [&](Call&) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) {
    const Quiet quiet;
    const std::lock_guard lock(state().mutex);
    if (!state().no_driver && state().count == 0) *count = 0;
  }
  return call(__func__, devices, [&](Call&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = state().count;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  return call(__func__, devices, [&](Call&) {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (!valid(number)) return cudaErrorInvalidDevice;
    const auto& device = device_at(number);
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "%s", device.name.c_str());
    properties->uuid.bytes[0] = static_cast<char>(0xfa);
    properties->uuid.bytes[15] = static_cast<char>(device.physical);
    properties->totalGlobalMem = device.total;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerMultiprocessor = 228 << 10;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->maxBlocksPerMultiProcessor = 32;
    for (int axis = 0; axis < 3; ++axis) {
      properties->maxThreadsDim[axis] = axis == 2 ? 64 : 1024;
      properties->maxGridSize[axis] = axis == 0 ? 2147483647 : 65535;
    }
    properties->totalConstMem = 64 << 10;
    properties->major = device.major;
    properties->minor = device.minor;
    properties->multiProcessorCount = device.multiprocessors;
    properties->pciBusID = pci_bus(device);
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = properties->unifiedAddressing = 1;
    properties->memoryPoolsSupported = device.pools_supported ? 1 : 0;
    properties->canMapHostMemory = properties->streamPrioritiesSupported = 1;
    properties->memoryBusWidth = 4096;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  return call(__func__, devices, [&](Call& entry) {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!valid(number)) return cudaErrorInvalidDevice;
    const auto& device = device_at(number);
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = device.multiprocessors;
        break;
      case cudaDevAttrComputeCapabilityMajor:
        *value = device.major;
        break;
      case cudaDevAttrComputeCapabilityMinor:
        *value = device.minor;
        break;
      case cudaDevAttrPciBusId:
        *value = pci_bus(device);
        break;
      case cudaDevAttrWarpSize:
        *value = 32;
        break;
      case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        break;
      case cudaDevAttrMaxGridDimX:
        *value = 2147483647;
        break;
      case cudaDevAttrMemoryPoolsSupported:
        *value = device.pools_supported ? 1 : 0;
        break;
      case cudaDevAttrUnifiedAddressing:
      case cudaDevAttrConcurrentKernels:
      case cudaDevAttrCanMapHostMemory:
      case cudaDevAttrHostNativeAtomicSupported:
        *value = attribute == cudaDevAttrHostNativeAtomicSupported ? 0 : 1;
        break;
      case cudaDevAttrAsyncEngineCount:
        *value = 2;
        break;
      case cudaDevAttrPciDomainId:
      case cudaDevAttrPciDeviceId:
      case cudaDevAttrIntegrated:
      case cudaDevAttrComputeMode:
      case cudaDevAttrManagedMemory:
      case cudaDevAttrConcurrentManagedAccess:
      case cudaDevAttrPageableMemoryAccess:
        *value = 0;
        break;
      default:
        entry.wrong("the stand-in does not know the attribute " + std::to_string(static_cast<int>(attribute)));
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int number) {
  return call(__func__, devices, [&](Call&) {
    if (out == nullptr || length < 13) return cudaErrorInvalidValue;
    if (!valid(number)) return cudaErrorInvalidDevice;
    std::snprintf(out, static_cast<std::size_t>(length), "0000:%02X:00.0",
                  static_cast<unsigned>(pci_bus(device_at(number))));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call(__func__, context | unsafe, [&](Call& entry) {
    synchronize_device(entry.lock, current_or_chosen());
    return cudaSuccess;
  });
}

// ---- peers ----------------------------------------------------------------------------------------------------------
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call(__func__, devices, [&](Call&) {
    if (can == nullptr) return cudaErrorInvalidValue;
    if (!valid(device) || !valid(peer)) return cudaErrorInvalidDevice;
    *can = able(device, peer) ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return call(__func__, context, [&](Call&) {
    const int device = current_or_chosen();
    if (flags != 0) return cudaErrorInvalidValue;
    if (!valid(peer) || peer == device) return cudaErrorInvalidDevice;
    if (!able(device, peer)) return cudaErrorPeerAccessUnsupported;
    make_context(peer);
    return device_at(device).peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call(__func__, context, [&](Call&) {
    if (!valid(peer)) return cudaErrorInvalidDevice;
    return device_at(current_or_chosen()).peers.erase(peer) > 0 ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
  });
}

}  // extern "C"
