// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/memory/transfer_log.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>

#include "memory/remote_memory.hpp"

using fanout::host_memory;
using fanout::MemorySpace;
using fanout::backend::Memory;
using fanout::backend::Transfer;
using fanout::detail::transfer_log;
using fanout_test::RemoteMemory;

namespace {

struct Noted {
  MemorySpace to, from;
  std::size_t bytes;
};

/// Logs the transfers of this thread while it lives.
class Notes final : public fanout::detail::TransferLog {
 public:
  Notes() : before_(std::exchange(transfer_log(), static_cast<TransferLog*>(this))) {}
  ~Notes() { transfer_log() = before_; }
  void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept override {
    all.push_back({to, from, bytes});
  }
  std::vector<Noted> all;

 private:
  fanout::detail::TransferLog* before_;
};

/// Memory of a remote device.
struct Remote {
  Memory memory;
  std::size_t bytes;
  void* data = memory.operations->allocate(memory.space, bytes);
  Remote(int index, std::size_t size) : memory(RemoteMemory::memory(index)), bytes(size) {}
  ~Remote() { memory.operations->release(memory.space, data, bytes, nullptr); }
};

}  // namespace

TEST_CASE("each transfer between two memories is logged once, with its bytes") {
  std::array<char, 24> here{};
  const Remote a(0, 24);
  const Remote b(1, 24);
  Notes notes;
  fanout::backend::transfer(a.memory, a.data, host_memory, here.data(), 24);
  fanout::backend::transfer(b.memory, b.data, a.memory.space, a.data, 16);
  fanout::backend::transfer(Memory{}, here.data(), b.memory.space, b.data, 8);
  REQUIRE(notes.all.size() == 3);
  CHECK(notes.all[0].to == a.memory.space);
  CHECK(notes.all[0].from == host_memory);
  CHECK(notes.all[0].bytes == 24);
  CHECK(notes.all[1].to == b.memory.space);
  CHECK(notes.all[1].from == a.memory.space);
  CHECK(notes.all[1].bytes == 16);
  CHECK(notes.all[2].to == host_memory);
  CHECK(notes.all[2].from == b.memory.space);
  CHECK(notes.all[2].bytes == 8);

  std::array<Transfer, 2> several{
      Transfer{.to_data = here.data(), .from = a.memory.space, .from_data = a.data, .bytes = 3},
      Transfer{.to_data = here.data() + 8, .from = b.memory.space, .from_data = b.data, .bytes = 5}};
  fanout::backend::transfer_all(Memory{}, several.data(), 2);
  REQUIRE(notes.all.size() == 5);
  CHECK(notes.all[3].bytes + notes.all[4].bytes == 8);
}

TEST_CASE("a transfer into new memory is logged once, whether the memory has an operation for it or not") {
  std::array<char, 8> here{};
  static fanout::backend::MemoryOperations operations = *RemoteMemory::memory(0).operations;
  operations.fresh = &operations;
  operations.transfer_in = [](const MemorySpace& to, const MemorySpace& from, const void* data, std::size_t bytes) {
    void* const copy = operations.allocate(to, bytes);
    operations.transfer(to, copy, from, data, bytes);
    return copy;
  };
  for (const bool has_operation : {true, false}) {
    CAPTURE(has_operation);
    if (!has_operation) operations.transfer_in = nullptr;
    const Memory memory{RemoteMemory::memory(0).space, &operations};
    const Notes notes;
    void* const copy = fanout::backend::transfer_in(memory, host_memory, here.data(), 8);
    operations.release(memory.space, copy, 8, nullptr);
    REQUIRE(notes.all.size() == 1);
    CHECK(notes.all[0].to == memory.space);
    CHECK(notes.all[0].from == host_memory);
    CHECK(notes.all[0].bytes == 8);
  }
}

TEST_CASE("a copy within a memory, and one of no bytes, is not logged") {
  std::array<char, 8> here{};
  const Remote a(0, 16);
  fanout::backend::transfer(a.memory, a.data, host_memory, here.data(), 8);
  const Notes notes;
  fanout::backend::transfer(Memory{}, here.data() + 4, host_memory, here.data(), 4);
  fanout::backend::transfer(a.memory, static_cast<char*>(a.data) + 8, a.memory.space, a.data, 8);
  fanout::backend::transfer(a.memory, a.data, host_memory, here.data(), 0);
  CHECK(notes.all.empty());
}

TEST_CASE("only the transfers of a log's own thread are logged") {
  CHECK(transfer_log() == nullptr);
  std::array<char, 8> here{};
  const Remote a(0, 8);
  const Notes notes;
  std::thread([&] { fanout::backend::transfer(a.memory, a.data, host_memory, here.data(), 8); }).join();
  CHECK(notes.all.empty());
}
