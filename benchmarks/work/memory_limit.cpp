// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How fast two cores can copy, each its half of an array, by the better of memcpy and streaming stores, which a trial
// tells. Case forced_copy; contenders:
// limit     again and again, without waiting for each other
// together  as a call has to: the caller tells the other core, and waits until both are done
// one_core  memcpy of the whole by the caller alone

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <harness/cores.hpp>
#include <harness/slice.hpp>
#include <harness/ticks.hpp>
#include <work/copied.hpp>
#include <work/grid.hpp>

namespace {

using Copy = void(std::byte*, const std::byte*, std::size_t);

void by_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

/// Past the caches, a line at a time; both are aligned to one.
void by_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
  }
  _mm_sfence();
#elif defined(__AVX__)
  for (std::size_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
  _mm_sfence();
#else
  by_memcpy(to, from, bytes);
#endif
}

/// Memory whose pages are there.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(4096)))) {
    std::memset(data_.get(), 1, bytes);
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t(4096)); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// A copy that another core makes.
struct Half {
  Copy* copy;
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;

  void make() const { copy(to, from, bytes); }
};

/// Another core that copies: as long as this lives, or, if the two are to meet, once for each ask().
class Companion {
 public:
  Companion(int core, const Half& half, bool meets)
      : thread_([this, core, half, meets] {
          benchmarks::bind_to(core);
          half.make();
          ready_.store(true, std::memory_order_release);
          while (true) {
            const int state = state_.load(std::memory_order_acquire);
            if (state == stop) return;
            if (meets && state == idle) continue;
            half.make();
            if (meets) state_.store(idle, std::memory_order_release);
          }
        }) {
    while (!ready_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  ~Companion() {
    state_.store(stop, std::memory_order_release);
    thread_.join();
  }

  void ask() noexcept { state_.store(asked, std::memory_order_release); }
  void wait() const noexcept {
    while (state_.load(std::memory_order_acquire) != idle) {
    }
  }

 private:
  static constexpr int idle = 0;
  static constexpr int asked = 1;
  static constexpr int stop = 2;

  alignas(64) std::atomic<int> state_ = idle;
  alignas(64) std::atomic<bool> ready_ = false;
  std::thread thread_;
};

/// The least time of a few calls, in ticks.
template <class Call>
std::int64_t least_ticks(const Call& call) {
  std::int64_t least = INT64_MAX;
  for (std::int64_t i = 0, end = benchmarks::nanoseconds() + 50'000'000; i < 3 || benchmarks::nanoseconds() < end;
       ++i) {
    const std::int64_t begin = benchmarks::ticks();
    call();
    least = std::min(least, benchmarks::ticks() - begin);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  if (slice.name() != "forced_copy") slice.fault("no case " + slice.name());
  const benchmarks::Grid grid(slice.number("floats", 1e6));
  slice.all_keys_read();
  const std::size_t bytes = grid.size() * sizeof(float) / 128 * 128;  // two halves of whole lines
  const Bytes from(bytes);
  const Bytes to(bytes);
  slice.pin_caller();

  const auto half_of = [&](std::size_t i, Copy* copy) {
    return Half{copy, to.data() + i * (bytes / 2), from.data() + i * (bytes / 2), bytes / 2};
  };
  const auto try_out = [&](Copy* copy) {
    const Half mine = half_of(0, copy);
    const Companion other(slice.core(1), half_of(1, copy), false);
    return least_ticks([&] { mine.make(); });
  };

  const std::string& way = slice.contender();
  benchmarks::Report report;
  if (way == "one_core") {
    report = slice.measure([&] { by_memcpy(to.data(), from.data(), bytes); });
  } else if (way == "limit" || way == "together") {
    const bool streaming = try_out(by_streaming) < try_out(by_memcpy);
    Copy* const copy = streaming ? by_streaming : by_memcpy;
    const bool meets = way == "together";
    const Half mine = half_of(0, copy);
    Companion other(slice.core(1), half_of(1, copy), meets);
    report = slice.measure([&] {
      if (meets) other.ask();
      mine.make();
      if (meets) other.wait();
    });
    report.set("by", streaming ? "streaming stores" : "memcpy");
  } else {
    slice.fault("no contender " + way);
  }
  benchmarks::set_copied(report, static_cast<double>(bytes)).print();
}
