// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/observe/nvtx_ranges.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/observe.hpp>

// The header stands in the room `observe`. It is tested here, where the toolkit is found, which has NVTX.

namespace {

std::mutex nvtx_mutex;
std::vector<std::string> nvtx_told;

extern "C" int NVTX_API note_push(const nvtxEventAttributes_t* range) {
  const std::lock_guard noting(nvtx_mutex);
  nvtx_told.push_back(std::string(range->message.ascii) + " " + std::to_string(range->payload.ullValue));
  return 0;
}
extern "C" int NVTX_API note_pop() {
  const std::lock_guard noting(nvtx_mutex);
  nvtx_told.emplace_back("-");
  return 0;
}

/// What NVTX calls at its first use: hands over the functions of the profiler.
extern "C" int NVTX_API attach(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0) return 0;
  *functions[NVTX_CBID_CORE_RangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&note_push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&note_pop);
  return 1;
}

struct Quarters {
  int forward(std::span<const int> rows) const { return static_cast<int>(rows.size()); }
};

/// Before main(), since NVTX looks for profilers once.
[[maybe_unused]] const bool is_attached = (InitializeInjectionNvtx2_fnptr = &attach, true);

}  // namespace

TEST_CASE("a profiler that knows NVTX is told of measured calls and of their shards' stages") {
  nvtx_told.clear();
  const fanout::ParallelModel model{Quarters{}, fanout::host_devices(1), {.measure = true}};
  model(std::vector<int>(4));
  const std::lock_guard looking(nvtx_mutex);
  REQUIRE(nvtx_told.size() == 6);
  CHECK(nvtx_told[0].rfind("call of ", 0) == 0);
  CHECK(nvtx_told[0].find("Quarters") != std::string::npos);
  CHECK(nvtx_told[1].rfind("scatter to ", 0) == 0);
  CHECK(nvtx_told[3].rfind("forward of ", 0) == 0);
  CHECK(nvtx_told[3].find("Quarters 0") != std::string::npos);
  CHECK(nvtx_told[2] + nvtx_told[4] + nvtx_told[5] == "---");
}

TEST_CASE("names of models that are too long for a range are cut") {
  nvtx_told.clear();
  fanout::detail::nvtx_ranges.begin("forward of ", std::string(300, 'x'), 7);
  fanout::detail::nvtx_ranges.end();
  const std::lock_guard looking(nvtx_mutex);
  CHECK(nvtx_told == std::vector<std::string>{"forward of " + std::string(116, 'x') + " 7", "-"});
}
