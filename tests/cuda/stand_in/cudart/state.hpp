// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The books of the stand-in. All of it is guarded by `State::mutex` and used while Quiet.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "order.hpp"

namespace stand_in {

inline constexpr int max_devices = 64;

/// What is known to be before a position: per stream, the number of operations.
class Clock {
 public:
  void merge(const Clock& other);
  void set(unsigned stream, std::uint64_t position);
  bool covers(unsigned stream, std::uint64_t position) const;

  struct Position {
    unsigned stream;
    std::uint64_t position;
  };

 private:
  std::vector<Position> seen_;  // by the stream; a map takes so long that programs on it show nothing else
};

/// A place in a stream that others wait for: an event's record, a synchronisation.
struct Point {
  bool done = false;
  std::condition_variable reached;  ///< of its own: with one for all, each point would wake all that wait
  Order order;
  Clock clock;
  std::chrono::steady_clock::time_point when;
};
using PointPtr = std::shared_ptr<Point>;

/// What an operation in a stream is.
enum class Work { other, host_function, copy };

/// One operation in a stream: it waits for a point, does its work, and reaches a point.
struct Task {
  std::function<void()> run;
  PointPtr waits_for;
  PointPtr reaches;
  Work work = Work::other;
  Order start;
};

struct Stream {
  unsigned id = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool is_default = false;
  bool started = false;
  bool destroyed = false;
  std::deque<std::unique_ptr<Task>> queue;
  std::condition_variable wake;
  bool busy = false;
  std::uint64_t pushed = 0;
  Clock clock;
  PointPtr tail;  ///< the newest point, at position `tail_at`
  std::uint64_t tail_at = 0;
  std::map<unsigned, std::uint64_t>
      waited;  ///< how far this stream has waited for others, for the default stream's rule

  bool blocking() const { return !is_default && (flags & cudaStreamNonBlocking) == 0; }
};
using StreamPtr = std::shared_ptr<Stream>;

struct Event {
  int device = 0;
  unsigned flags = 0;
  PointPtr point;  ///< null: never recorded
};

struct Pool {
  int device = 0;
  std::size_t limit = 0;  ///< 0: none
  std::uint64_t threshold = 0;
  std::size_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  struct Freed {
    unsigned stream;
    std::uint64_t position;
    std::size_t bytes;
  };
  std::vector<Freed> freed;  ///< that the driver does not know yet to be out of use
  std::set<int> access;
  bool reuses_what_is_in_use = true;  ///< cudaMemPoolReuseAllowInternalDependencies, as the driver sets it
  bool destroyed = false;
};
using PoolPtr = std::shared_ptr<Pool>;

enum class Kind { device, pinned, pageable };

/// One allocation. Its bytes go when nobody holds it any more, so that an operation that is still pending when its
/// memory is freed is reported and nothing worse.
struct Block {
  Block(Kind kind, int device, std::size_t bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Kind kind;
  int device;
  std::size_t bytes;
  char* data = nullptr;
  int node = -1;  ///< of pinned memory: the NUMA node that the allocating thread preferred
  PoolPtr pool;   ///< null: cudaMalloc
  unsigned made_in = 0;
  std::uint64_t made_at = 0;
  std::map<unsigned, std::uint64_t> uses;  ///< per stream, the newest
};
using BlockPtr = std::shared_ptr<Block>;

/// The newest kernel of NCCL on a device.
struct Collective {
  const void* communicator = nullptr;  ///< null: there was none
  unsigned stream = 0;
  std::uint64_t position = 0;
};

struct Device {
  std::string name;
  std::size_t total = std::size_t{1} << 30;
  std::size_t others = 0;
  std::size_t allocated = 0;  ///< by cudaMalloc
  int multiprocessors = 16;
  int major = 9, minor = 0;
  int retained = 0;  ///< of the primary context
  bool runtime_holds = false;
  bool reset = false;  ///< by cudaDeviceReset, until the runtime makes its context again
  bool had_context = false;
  int poison = 0;
  std::set<int> peers;  ///< that it may access
  StreamPtr default_stream;
  std::vector<PointPtr> destroyed_streams;  ///< where those end that were destroyed while busy
  int physical = 0;
  PoolPtr default_pool, current_pool;
  bool pools_supported = true;
  Collective collective;
};

struct Failure {
  std::string function;  ///< empty: any
  int after = 0;         ///< so many calls go well first
  int times = 1;
  int code = 0;
  int poisons = -1;  ///< the device that answers with the code from then on, -1: none
};

struct Copied {
  long copies = 0;
  std::size_t bytes = 0;
};

struct ThreadState;

/// A stream that is being captured into a graph.
struct Capture {
  unsigned stream;
  const ThreadState* thread;
  cudaStreamCaptureMode mode;
  bool invalidated;
};

struct State {
  std::mutex mutex;

  bool no_driver = false;
  bool touched = false;  ///< by a call that asks about devices
  bool forked = false;   ///< from a process that had touched CUDA
  bool unloading = false;
  unsigned delays = 0;
  unsigned copy_cost = 0;  ///< microseconds that each copy takes
  int copies_now = 0;
  int most_copies_at_once = 0;
  int count = 2;
  std::array<Device, max_devices> devices;
  std::set<std::pair<int, int>> no_peer;     // the lower number first
  std::set<std::pair<int, int>> corrupting;  // from, to

  unsigned next_id = 1;
  std::map<unsigned, StreamPtr> streams;
  std::map<unsigned, std::shared_ptr<Event>> events;
  std::map<unsigned, PoolPtr> pools;
  std::map<std::uintptr_t, BlockPtr> blocks;
  Clock host;          ///< what some host thread has waited for
  Clock synchronized;  ///< the same, but for what it has only asked for

  std::vector<Capture> captures;

  std::vector<Failure> failures;
  std::map<std::string, long> calls;
  std::map<std::string, Copied> copied;
  std::map<std::string, int> allowed, others_alive;
  std::vector<std::string> misuse;
};

/// Made at the first use, never destroyed.
State& state();
inline bool valid(int device) { return device >= 0 && device < state().count; }
inline Device& device_at(int device) { return state().devices[static_cast<std::size_t>(device)]; }

/// What a thread has. Trivial, so that it is there until the thread's very end.
struct ThreadState {
  std::array<signed char, 64> stack;  ///< of contexts, as numbers of devices
  int depth;
  int chosen;  ///< by cudaSetDevice
  int last_error;
  int sticky_of;  ///< the device whose sticky error it is, plus one
  bool in_host_function;
  cudaStreamCaptureMode capture_mode;  ///< 0 is global, the default
};
ThreadState& this_thread();

// ---- used by several files; all with the mutex locked -------------------------------------------------------------
void read_environment(State& all);
void misuse(const char* call, const std::string& what);
std::string text(const void* pointer);
std::string device_text(int device);
/// Sees to it that the primary context of the device is there.
void make_context(int device);
int current_or_chosen();

/// A call that is unsafe during a capture invalidates those captures that this thread's mode does not let it ignore.
/// Says whether there are any.
bool invalidates_captures();
/// Null if the handle means no stream. The stream 0 is that of the current device.
StreamPtr find_stream(const char* call, cudaStream_t handle);
unsigned id_of(const void* handle);
template <class Handle>
Handle handle_of(unsigned id) {
  return reinterpret_cast<Handle>(std::uintptr_t{0x0fa0000000000000} | (std::uintptr_t{id} << 8));
}
StreamPtr default_stream(int device);
/// The position of an operation that gives the stream's thread nothing to do.
std::uint64_t next_position(const StreamPtr& stream);
/// Appends an operation; the stream's thread runs it in order. Returns its position.
std::uint64_t push(const StreamPtr& stream, std::function<void()> run, Work work = Work::other);
PointPtr push_point(const StreamPtr& stream);
void push_wait(const StreamPtr& stream, const PointPtr& point);
bool idle(const Stream& stream);
/// Waits as a host thread.
void wait(std::unique_lock<std::mutex>& lock, const PointPtr& point);
void synchronize_device(std::unique_lock<std::mutex>& lock, int device);

BlockPtr find_block(const void* pointer);
/// Whether `bytes` more fit on the device beside what is there.
bool fits(const Device& device, std::size_t bytes);
std::size_t bytes_in_use(int device);
void trim(Pool& pool, std::size_t keep);
/// The host has waited for the point by a call that synchronizes.
void note_synchronized(const Point& point);
/// Reports what is wrong with a use of the block by the stream, and remembers it. `position` is that of the operation.
void note_use(const char* call, const BlockPtr& block, const Stream& stream, std::uint64_t position);
/// Reports operations that may still be using a block that is being freed: those that `clock` does not cover.
void check_unused(const char* call, const Block& block, const Clock& clock);
/// Overwrites memory that is given back, as seen by sanitizers. Not while Quiet.
void spoil(const Block& block);

}  // namespace stand_in
