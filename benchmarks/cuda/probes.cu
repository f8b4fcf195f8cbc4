// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// probes NAME: prints figures that decide a question about a real card. A line that begins with "SUSPICION TRUE" names
// a fault that was only suspected. Ends with 77 if the probe needs something that is not there.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__CUDACC__)
#include <type_traits>

#include <cuda.h>
#include <dlfcn.h>
#endif

#include <fanout/cuda.hpp>

#include "benchmarks/cuda/compare.hpp"
#include "benchmarks/cuda/kernels.hpp"

namespace {

namespace cuda = fanout::cuda;
using benchmarks::check;
using benchmarks::seconds_of;
using Rows = fanout::Tensor<float, 2>;

constexpr double kernel_ms = 100;

std::atomic<const void*> latest{nullptr};
std::atomic<int> started{0};

struct Kept {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    latest = y.data();
    return fanout::sharded(std::move(y));
  }
};

struct Busy {
  int forward(fanout::Context auto& ctx, fanout::View<const float, 2>, std::uint64_t nanoseconds) const {
    fanout::launch(ctx, 1, benchmarks::Spin{nanoseconds});
    ++started;
    return 0;
  }
};

constexpr auto nanoseconds = static_cast<std::uint64_t>(kernel_ms * 1e6);

void suspicion(bool found, const char* what) { std::printf("%s: %s\n", found ? "SUSPICION TRUE" : "not seen", what); }

/// Where the results of successive calls are: one block again and again, or several in turn.
int addresses() {
  const Rows x(1024, 1024);
  const fanout::ParallelModel model{Kept{}, fanout::cuda_devices(1)};
  const auto there = model(x);
  bool moves = false;
  const void* first = nullptr;
  for (int n = 0; n < 8; ++n) {
    { const auto y = model(there); }
    std::printf("result %d, destroyed before the next call: %p\n", n, latest.load());
    if (n == 1) first = latest;
    moves = moves || (n > 1 && latest != first);
  }
  suspicion(moves, "results that are destroyed before the next call use different blocks in turn");
  return 0;
}

/// 64 MiB to the host in chunks. Each thread has a stream and two page-locked chunks, one filled while it copies out
/// the other.
double chunked(const char* from, char* to, std::size_t bytes, std::size_t chunk, std::size_t threads) {
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t filled[2] = {};
    void* pinned[2] = {};
  };
  std::vector<Lane> lanes(threads);
  for (Lane& lane : lanes) {
    check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (int i = 0; i < 2; ++i) {
      check(cudaEventCreateWithFlags(&lane.filled[i], cudaEventDisableTiming), "cudaEventCreateWithFlags");
      check(cudaMallocHost(&lane.pinned[i], chunk), "cudaMallocHost");
    }
  }
  const std::size_t chunks = bytes / chunk;
  std::atomic<int> failed{0};
  const auto work = [&](std::size_t me) {
    Lane& lane = lanes[me];
    int status = cudaSetDevice(0);
    const auto fill = [&](std::size_t n, std::size_t slot) {
      status += cudaMemcpyAsync(lane.pinned[slot], from + n * chunk, chunk, cudaMemcpyDeviceToHost, lane.stream);
      status += cudaEventRecord(lane.filled[slot], lane.stream);
    };
    std::size_t slot = 0;
    if (me < chunks) fill(me, slot);
    for (std::size_t n = me; n < chunks; n += threads, slot = 1 - slot) {
      if (n + threads < chunks) fill(n + threads, 1 - slot);
      status += cudaEventSynchronize(lane.filled[slot]);
      std::memcpy(to + n * chunk, lane.pinned[slot], chunk);
    }
    failed += status;
  };
  const auto once = [&] {
    return seconds_of([&] {
      std::vector<std::thread> others;
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
      work(0);
      for (std::thread& other : others) other.join();
    });
  };
  std::vector<double> seconds;
  once();
  for (int round = 0; round < 5; ++round) seconds.push_back(once());
  for (Lane& lane : lanes) {
    for (int i = 0; i < 2; ++i) {
      static_cast<void>(cudaEventDestroy(lane.filled[i]));
      static_cast<void>(cudaFreeHost(lane.pinned[i]));
    }
    static_cast<void>(cudaStreamDestroy(lane.stream));
  }
  if (failed != 0) std::printf("FAULT: a copy failed\n");
  return failed != 0 ? 0 : static_cast<double>(bytes) / 1e9 / benchmarks::quantile(seconds, 0.5);
}

int downloads() {
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  void* from = nullptr;
  check(cudaMalloc(&from, bytes), "cudaMalloc");
  std::vector<char> to(bytes);
  const auto straight = [&](const char* how) {
    std::vector<double> seconds;
    for (int round = 0; round < 6; ++round) {
      seconds.push_back(
          seconds_of([&] { check(cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy"); }));
    }
    std::printf("64 MiB to the host, %s: %.2f GB/s\n", how, bytes / 1e9 / benchmarks::quantile(seconds, 0.5));
    std::fflush(stdout);
  };
  straight("pageable, one copy");
  std::printf("GB/s to pageable memory by chunk and copying threads\n%10s %8d %8d %8d %8d\n", "KiB", 1, 2, 4, 8);
  bool whole = true;
  for (std::size_t chunk = std::size_t{256} << 10U; chunk <= std::size_t{8} << 20U; chunk *= 2) {
    std::printf("%10zu", chunk >> 10U);
    for (const std::size_t threads : {1U, 2U, 4U, 8U}) {
      const double rate = chunked(static_cast<const char*>(from), to.data(), bytes, chunk, threads);
      whole = whole && rate > 0;
      std::printf(" %8.2f", rate);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
#if defined(__CUDACC__)
  const double registering =
      seconds_of([&] { check(cudaHostRegister(to.data(), bytes, cudaHostRegisterDefault), "cudaHostRegister"); });
  std::printf("registering 64 MiB: %.2f ms\n", 1e3 * registering);
  straight("registered");
  check(cudaHostUnregister(to.data()), "cudaHostUnregister");
#endif
  check(cudaFree(from), "cudaFree");
  return whole ? 0 : 1;
}

/// One thread captures in each mode, and another one does something beside it.
int capture() {
  const Rows x(16, 16);
  const fanout::ParallelModel model{Kept{}, fanout::cuda_devices(1)};
  model(x);
  cudaStream_t captured = nullptr;
  cudaStream_t other = nullptr;
  check(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  bool ended = false;
  struct Mode {
    cudaStreamCaptureMode mode;
    const char* name;
  };
  for (const Mode mode :
       {Mode{cudaStreamCaptureModeGlobal, "global"}, Mode{cudaStreamCaptureModeThreadLocal, "thread local"},
        Mode{cudaStreamCaptureModeRelaxed, "relaxed"}}) {
    for (const char* what : {"nothing", "a model's call", "cudaStreamSynchronize", "cudaMalloc"}) {
      check(cudaStreamBeginCapture(captured, mode.mode), "cudaStreamBeginCapture");
      const char* said = "succeeds";
      std::thread([&] {
        cudaError_t status = cudaSetDevice(0);
        if (what[0] == 'a') {
          try {
            model(x);
          } catch (const std::exception&) {
            said = "throws";
          }
        } else if (what[4] == 'S') {
          status = cudaStreamSynchronize(other);
        } else if (what[4] == 'M') {
          void* data = nullptr;
          status = cudaMalloc(&data, 1024);
          if (status == cudaSuccess) status = cudaFree(data);
        }
        if (status != cudaSuccess) said = cudaGetErrorName(status);
        static_cast<void>(cudaGetLastError());
      }).join();
      cudaGraph_t graph = nullptr;
      const cudaError_t end = cudaStreamEndCapture(captured, &graph);
      static_cast<void>(cudaGetLastError());
      if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
      std::printf("capture %-12s beside %-22s: it %s, the capture %s\n", mode.name, what, said,
                  end == cudaSuccess ? "goes on" : "is ended");
      ended = ended || (what[0] == 'a' && (end != cudaSuccess || said[0] != 's'));
    }
  }
  suspicion(ended, "a model's call disturbs a capture of another thread, or fails beside it");
  check(cudaStreamDestroy(captured), "cudaStreamDestroy");
  check(cudaStreamDestroy(other), "cudaStreamDestroy");
#if !defined(__CUDACC__)
  // The misuse follows from the disturbed capture, which is what this shows.
  if (stand_in_is_here()) std::printf("the stand-in reports:\n%s", stand_in_misuse());
#endif
  return 0;
}

/// Code compiled with --default-stream per-thread starts in cudaStreamPerThread what others start in the legacy stream.
int default_stream() {
  const Rows x(16, 16);
  const fanout::ParallelModel model{Busy{}, fanout::cuda_devices(1)};
  const auto call = [&] { return 1e3 * seconds_of([&] { model(x, std::uint64_t{0}); }); };
  call();
  const auto behind = [&](cudaStream_t stream) {
    benchmarks::busy(stream, kernel_ms);
    const double took = call();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return took;
  };
  const double alone = call();
  const double legacy = behind(cudaStreamLegacy);
  std::printf("a call: %.2f ms; behind %.0f ms of the legacy stream: %.2f ms\n", alone, kernel_ms, legacy);
  suspicion(legacy > kernel_ms / 2, "a call waits for work in the legacy default stream");
#if defined(__CUDACC__)  // the stand-in has no such stream
  const double own = behind(cudaStreamPerThread);
  std::printf("behind %.0f ms of the thread's default stream: %.2f ms\n", kernel_ms, own);
  suspicion(own < kernel_ms / 2, "a call does not wait for work in the thread's default stream");
#endif
  return 0;
}

/// A page-locked tensor whose copy is done is destroyed, while the stream has later work.
int pinned() {
  const fanout::ParallelModel model{Busy{}, fanout::cuda_devices(1)};
  const Rows resident(16, 16);
  std::optional<Rows> x = cuda::pinned<float>(16, 16);
  model(*x, std::uint64_t{0});
  const int before = started;
  auto later = model.async(resident, nanoseconds);
  while (started == before) std::this_thread::yield();  // else there is no later work yet
  const double took = 1e3 * seconds_of([&] { x.reset(); });
  later.get();
  std::printf("destroying a page-locked tensor before %.0f ms of later work: %.2f ms\n", kernel_ms, took);
  suspicion(took > kernel_ms / 2, "destroying a page-locked tensor waits for later work of the stream");
  return 0;
}

/// NCCL with one rank: start, sum, abort. By dlopen, so that this program starts without NCCL.
int nccl() {
#if !defined(__CUDACC__)
  std::printf("skipped: NCCL itself does not run on the stand-in\n");
  return 77;
#else
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    std::printf("skipped: this machine has no libnccl.so.2\n");
    return 77;
  }
  const auto start = reinterpret_cast<int (*)(void**, int, const int*)>(dlsym(library, "ncclCommInitAll"));
  const auto sum = reinterpret_cast<int (*)(const void*, void*, std::size_t, int, int, void*, cudaStream_t)>(
      dlsym(library, "ncclAllReduce"));
  const auto abort = reinterpret_cast<int (*)(void*)>(dlsym(library, "ncclCommAbort"));
  if (start == nullptr || sum == nullptr || abort == nullptr) return 1;
  constexpr int float32 = 7, added = 0;  // of nccl.h
  void* communicator = nullptr;
  const int device = 0;
  int status = 0;
  std::printf("start: %.1f ms\n", 1e3 * seconds_of([&] { status += start(&communicator, 1, &device); }));
  if (status != 0) return 1;
  void* data = nullptr;
  check(cudaMalloc(&data, 1 << 20), "cudaMalloc");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  std::printf("sum of 1 MiB: %.3f ms\n", 1e3 * seconds_of([&] {
                                           status += sum(data, data, 1 << 18, float32, added, communicator, stream);
                                           check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
                                         }));
  std::printf("abort: %.1f ms\n", 1e3 * seconds_of([&] { status += abort(communicator); }));
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  check(cudaFree(data), "cudaFree");
  std::printf("%s\n", status == 0 ? "as it should be" : "FAULT: NCCL reports an error");
  return status == 0 ? 0 : 1;
#endif
}

/// Two parts of the card as two devices: whether their kernels run side by side.
int green() {
#if defined(__CUDACC__)
  bool missing = false;
  const auto find = [&](const char* name, auto& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, &result) != cudaSuccess)
      found = nullptr;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    missing = missing || found == nullptr;
  };
  decltype(&cuDeviceGetDevResource) resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe = nullptr;
  decltype(&cuGreenCtxCreate) create = nullptr;
  decltype(&cuGreenCtxStreamCreate) stream_of = nullptr;
  find("cuDeviceGetDevResource", resource);
  find("cuDevSmResourceSplitByCount", split);
  find("cuDevResourceGenerateDesc", describe);
  find("cuGreenCtxCreate", create);
  find("cuGreenCtxStreamCreate", stream_of);
  static_cast<void>(cudaGetLastError());
  if (missing) {
    std::printf("skipped: this driver has no green contexts\n");
    return 77;
  }
  CUdevResource all{}, parts[2]{}, rest{};
  unsigned count = 2;
  int status = resource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (status == 0) status = split(parts, &count, &all, &rest, 0, all.sm.smCount / 2 / 8 * 8);
  cudaStream_t streams[2] = {};
  for (unsigned i = 0; i < 2 && status == 0; ++i) {
    CUdevResourceDesc text{};
    CUgreenCtx context = nullptr;
    CUstream made = nullptr;
    status = count < 2 ? 1 : describe(&text, &parts[i], 1);
    if (status == 0) status = create(&context, text, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    if (status == 0) status = stream_of(&made, context, CU_STREAM_NON_BLOCKING, 0);
    streams[i] = made;
    std::printf("part %u: %u of %u multiprocessors\n", i, parts[i].sm.smCount, all.sm.smCount);
  }
  if (status != 0) {
    std::printf("FAULT: the driver's status is %d\n", status);
    return 1;
  }
  for (cudaStream_t stream : streams) benchmarks::busy(stream, 0.01);
  for (cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double both = seconds_of([&] {
    for (cudaStream_t stream : streams) benchmarks::busy(stream, kernel_ms);
    for (cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
  std::printf("kernels on two parts / a kernel: %.2f (1 if side by side)\n", 1e3 * both / kernel_ms);
  return 0;
#else
  std::printf("skipped: the stand-in has no green contexts\n");
  return 77;
#endif
}

struct Probe {
  const char* name;
  int (*run)();
};
constexpr Probe probes[] = {
    {"addresses", &addresses}, {"downloads", &downloads}, {"capture", &capture}, {"default_stream", &default_stream},
    {"pinned", &pinned},       {"nccl", &nccl},           {"green", &green}};

}  // namespace

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const Probe& probe : probes) {
    if (argc != 2 || std::string_view(argv[1]) != probe.name) continue;
    if (!cuda::is_available()) {
      std::printf("skipped: no CUDA device (%s)\n", cuda::unavailable_reason().c_str());
      return 77;
    }
    return probe.run();
  }
  std::fprintf(stderr, "usage: probes NAME\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "FAULT: %s\n", error.what());
  return 1;
}
