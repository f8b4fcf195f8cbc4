// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The current device: per thread, a stack of contexts. Each device has only its primary context.
#include <cstring>

#include "call.hpp"

namespace stand_in {
namespace {

CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(&device_at(device)); }

/// -1 if it is none of ours.
int device_of(CUcontext context) {
  for (int device = 0; device < state().count; ++device) {
    if (context_of(device) == context) return device;
  }
  return -1;
}

/// A CUresult as a number: so who has not included cuda.h can call a function by its own type.
using DriverResult = unsigned;

template <class Body>
DriverResult driver_call(const char* name, unsigned needs, Body body) {
  Call entry(name, needs | devices | driver);
  return static_cast<DriverResult>(entry.finish(entry.refused() ? 0 : static_cast<int>(body(entry))));
}

}  // namespace

int current_or_chosen() {
  const auto& mine = this_thread();
  return mine.depth > 0 ? mine.stack[static_cast<std::size_t>(mine.depth - 1)] : mine.chosen;
}

void make_context(int device) {
  auto& made = device_at(device);
  made.had_context = true;
  made.reset = false;
  if (made.runtime_holds) return;
  made.runtime_holds = true;
  ++made.retained;
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  return call(__func__, devices, [&](Call&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = current_or_chosen();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call(__func__, devices, [&](Call&) {
    if (!valid(device)) return cudaErrorInvalidDevice;
    auto& mine = this_thread();
    mine.chosen = device;
    if (mine.depth == 0) mine.depth = 1;
    mine.stack[static_cast<std::size_t>(mine.depth - 1)] = static_cast<signed char>(device);
    make_context(device);
    return cudaSuccess;
  });
}

// Who retained the context keeps its handle. It is of no use until the runtime makes the context again, and what was
// made in it is gone for ever.
cudaError_t cudaDeviceReset() {
  return call(__func__, context, [](Call& entry) {
    const int device = current_or_chosen();
    synchronize_device(entry.lock, device);
    auto& all = state();
    std::erase_if(all.streams, [&](const auto& stream) {
      if (stream.second->device != device) return false;
      stream.second->destroyed = true;
      stream.second->wake.notify_one();
      return true;
    });
    std::erase_if(all.events, [&](const auto& event) { return event.second->device == device; });
    std::erase_if(all.blocks, [&](const auto& block) {
      return block.second->kind == Kind::device && block.second->device == device;
    });
    std::erase_if(all.pools, [&](const auto& pool) { return pool.second->device == device; });
    auto& gone = device_at(device);
    gone.default_pool.reset();
    gone.current_pool.reset();
    gone.default_stream.reset();
    gone.allocated = 0;
    gone.poison = 0;
    gone.reset = true;
    gone.peers.clear();
    for (auto& other : all.devices) other.peers.erase(device);
    this_thread().depth = 0;  // the runtime's next call makes a context
    this_thread().chosen = device;
    return cudaSuccess;
  });
}

// ---- the driver's, handed out by cudaGetDriverEntryPoint ------------------------------------------------------------
static DriverResult cuInit_stand_in(unsigned int) {
  return driver_call("cuInit", nothing, [](Call&) { return CUDA_SUCCESS; });
}

static DriverResult cuDeviceGet_stand_in(CUdevice* out, int ordinal) {
  return driver_call("cuDeviceGet", nothing, [&](Call&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
  });
}

static DriverResult cuDevicePrimaryCtxRetain_stand_in(CUcontext* out, CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRetain", nothing, [&](Call&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    device_at(device).had_context = true;
    ++device_at(device).retained;
    *out = context_of(device);
    return CUDA_SUCCESS;
  });
}

static DriverResult cuDevicePrimaryCtxRelease_stand_in(CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRelease", releasing, [&](Call& entry) {
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (device_at(device).retained == 0) {
      entry.wrong("the primary context of " + device_text(device) + " is not retained");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    --device_at(device).retained;
    return CUDA_SUCCESS;
  });
}

static DriverResult cuDevicePrimaryCtxGetState_stand_in(CUdevice device, unsigned int* flags, int* active) {
  return driver_call("cuDevicePrimaryCtxGetState", nothing, [&](Call&) {
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = device_at(device).retained > 0 && !device_at(device).reset ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

static DriverResult cuCtxPushCurrent_stand_in(CUcontext wanted) {
  return driver_call("cuCtxPushCurrent", nothing, [&](Call& entry) {
    const int device = device_of(wanted);
    if (device < 0 || device_at(device).retained == 0) {
      entry.wrong("no context has the handle " + text(wanted) + ": it was released, or is none");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (device_at(device).reset) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    auto& mine = this_thread();
    if (static_cast<std::size_t>(mine.depth) == mine.stack.size()) {
      entry.wrong("the thread has pushed contexts without end");
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mine.stack[static_cast<std::size_t>(mine.depth++)] = static_cast<signed char>(device);
    return CUDA_SUCCESS;
  });
}

static DriverResult cuCtxPopCurrent_stand_in(CUcontext* popped) {
  return driver_call("cuCtxPopCurrent", releasing, [&](Call& entry) {
    auto& mine = this_thread();
    if (mine.depth == 0) {
      entry.wrong("the thread has no current context");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    const int device = mine.stack[static_cast<std::size_t>(--mine.depth)];
    if (popped != nullptr) *popped = context_of(device);
    return CUDA_SUCCESS;
  });
}

static DriverResult cuCtxGetCurrent_stand_in(CUcontext* current) {
  return driver_call("cuCtxGetCurrent", nothing, [&](Call&) {
    if (current == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *current = this_thread().depth > 0 ? context_of(current_or_chosen()) : nullptr;
    return CUDA_SUCCESS;
  });
}

static DriverResult cuCtxGetDevice_stand_in(CUdevice* device) {
  return driver_call("cuCtxGetDevice", nothing, [&](Call&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (this_thread().depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    *device = current_or_chosen();
    return CUDA_SUCCESS;
  });
}

static DriverResult cuCtxSetCurrent_stand_in(CUcontext wanted) {
  return driver_call("cuCtxSetCurrent", nothing, [&](Call& entry) {
    auto& mine = this_thread();
    if (wanted == nullptr) {
      if (mine.depth > 0) --mine.depth;
      return CUDA_SUCCESS;
    }
    const int device = device_of(wanted);
    if (device < 0 || device_at(device).retained == 0) {
      entry.wrong("no context has the handle " + text(wanted) + ": it was released, or is none");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (device_at(device).reset) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (mine.depth == 0) mine.depth = 1;
    mine.stack[static_cast<std::size_t>(mine.depth - 1)] = static_cast<signed char>(device);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  struct Entry {
    const char* name;
    void* function;
  };
  static const Entry entries[] = {
      {"cuInit", reinterpret_cast<void*>(&cuInit_stand_in)},
      {"cuDeviceGet", reinterpret_cast<void*>(&cuDeviceGet_stand_in)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&cuDevicePrimaryCtxRetain_stand_in)},
      {"cuDevicePrimaryCtxRelease", reinterpret_cast<void*>(&cuDevicePrimaryCtxRelease_stand_in)},
      {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(&cuDevicePrimaryCtxGetState_stand_in)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(&cuCtxPushCurrent_stand_in)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(&cuCtxPopCurrent_stand_in)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(&cuCtxGetCurrent_stand_in)},
      {"cuCtxGetDevice", reinterpret_cast<void*>(&cuCtxGetDevice_stand_in)},
      {"cuCtxSetCurrent", reinterpret_cast<void*>(&cuCtxSetCurrent_stand_in)},
  };
  return call("cudaGetDriverEntryPointByVersion", devices, [&](Call&) {
    if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
    *function = nullptr;
    for (const auto& entry : entries) {
      if (std::strcmp(entry.name, symbol) == 0) *function = entry.function;
    }
    if (status != nullptr) {
      *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
  });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
#pragma GCC diagnostic pop

}  // extern "C"
