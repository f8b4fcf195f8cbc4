// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <fanout/memory/transfer.hpp>

#include "memory/counting_memory.hpp"
#include "memory/remote_memory.hpp"
#include "support/message_of.hpp"

using fanout::backend::Memory;
using fanout_test::RemoteMemory;

namespace {

constexpr fanout::backend::MemoryOperations other_operations{
    fanout::backend::host_memory_operations.allocate,
    fanout::backend::host_memory_operations.release,
    fanout::backend::host_memory_operations.copy,
    fanout::backend::host_memory_operations.clear,
    &other_operations,
    [](const fanout::MemorySpace&, void* to, const fanout::MemorySpace&, const void* from, std::size_t bytes) {
      fanout::backend::host_memory_operations.copy(fanout::host_memory, to, from, bytes);
    }};
constexpr fanout::MemorySpace other_space{{.kind = "other", .index = 0}};

}  // namespace

TEST_CASE("bytes go from any memory to any other that is known") {
  std::vector<int> numbers(100), back(100);
  std::iota(numbers.begin(), numbers.end(), 7);
  const std::size_t bytes = 100 * sizeof(int);
  const Memory host;
  const Memory one = RemoteMemory::memory(0);
  const Memory two = RemoteMemory::memory(1);
  void* const a = one.operations->allocate(one.space, bytes);
  void* const b = two.operations->allocate(two.space, bytes);
  fanout::backend::transfer(one, a, fanout::host_memory, numbers.data(), bytes);
  fanout::backend::transfer(two, b, one.space, a, bytes);
  fanout::backend::transfer(host, back.data(), two.space, b, bytes);
  CHECK(back == numbers);

  fanout::backend::declare_memory("other", other_operations);
  const Memory other = fanout::backend::memory_of(other_space);
  CHECK(other.operations == &other_operations);
  std::vector<int> there(100);
  fanout::backend::transfer(other, there.data(), two.space, b, bytes);  // by way of the host
  CHECK(there == numbers);
  there[0] = 1;
  fanout::backend::transfer(one, a, other_space, there.data(), bytes);
  fanout::backend::transfer(host, back.data(), one.space, a, bytes);
  CHECK(back == there);

  std::vector<int> copy(100);
  fanout::backend::transfer(host, copy.data(), fanout::host_memory, numbers.data(), bytes);
  CHECK(copy == numbers);
  one.operations->release(one.space, a, bytes, nullptr);
  two.operations->release(two.space, b, bytes, nullptr);
}

TEST_CASE("zero bytes can be transferred between any memories") {
  const int transferred = RemoteMemory::counts().transferred;
  fanout::backend::transfer(RemoteMemory::memory(0), nullptr, fanout::host_memory, nullptr, 0);
  CHECK(RemoteMemory::counts().transferred == transferred);
}

TEST_CASE("the first declaration of a memory kind counts, and host memory needs none") {
  fanout::backend::declare_memory("first", other_operations);
  fanout::backend::declare_memory("first", fanout::backend::host_memory_operations);
  CHECK(fanout::backend::memory_of({{.kind = "first", .index = 3}}).operations == &other_operations);
  CHECK(fanout::backend::memory_of({{.kind = "host", .index = 3}}).space == fanout::host_memory);
  CHECK(fanout::backend::memory_of({{.kind = "nobody", .index = 0}}).operations == nullptr);
}

TEST_CASE("an unknown transfer is an error with the words that people search for") {
  const fanout_test::CountingMemory counting;
  int number = 0;
  CHECK_FALSE(fanout::backend::can_transfer(counting.memory(), fanout::host_memory));
  CHECK_FALSE(fanout::backend::can_transfer({}, counting.space));
  CHECK_FALSE(fanout::backend::can_transfer(RemoteMemory::memory(0), counting.space));
  CHECK(fanout::backend::can_transfer(counting.memory(), counting.space));
  CHECK(fanout::backend::can_transfer(RemoteMemory::memory(0), RemoteMemory::memory(1).space));
  const std::string message = fanout_test::message_of<fanout::DeviceMismatch>(
      [&] { fanout::backend::transfer(counting.memory(), &number, fanout::host_memory, &number, sizeof(number)); });
  CHECK(message.find("Expected all tensors to be on the same device, but found at least two devices, counting:0 and "
                     "host:0") != std::string::npos);
}

namespace {

/// Operations that note how many transfers they were given at a time.
std::vector<std::size_t> given;
void note_all(const fanout::MemorySpace&, const fanout::backend::Transfer* transfers, std::size_t count) {
  given.push_back(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (transfers[i].bytes != 0) std::memcpy(transfers[i].to_data, transfers[i].from_data, transfers[i].bytes);
  }
}
constexpr fanout::backend::MemoryOperations joint_operations{
    .allocate = fanout::backend::host_memory_operations.allocate,
    .release = fanout::backend::host_memory_operations.release,
    .copy = fanout::backend::host_memory_operations.copy,
    .clear = fanout::backend::host_memory_operations.clear,
    .fresh = &joint_operations,
    .transfer = other_operations.transfer,
    .transfer_all = &note_all};
constexpr fanout::MemorySpace joint_space{{.kind = "joint", .index = 0}};
constexpr fanout::MemorySpace joint_space_too{{.kind = "joint", .index = 1}};

}  // namespace

TEST_CASE("transfers that one kind of memory makes are given to it together, and all are made") {
  fanout::backend::declare_memory("other", other_operations);
  fanout::backend::declare_memory("joint", joint_operations);
  const int from[] = {1, 2, 3, 4, 5, 6};
  const auto go = [&](const Memory& to, const std::vector<fanout::MemorySpace>& spaces) {
    std::vector<int> back(spaces.size());
    std::vector<fanout::backend::Transfer> transfers;
    for (std::size_t i = 0; i < spaces.size(); ++i) transfers.push_back({&back[i], spaces[i], &from[i], sizeof(int)});
    given.clear();
    fanout::backend::transfer_all(to, transfers.data(), transfers.size());
    for (std::size_t i = 0; i < spaces.size(); ++i) CHECK(back[i] == from[i]);
  };
  go({}, {joint_space, other_space, joint_space_too, fanout::host_memory, joint_space});
  CHECK(given == std::vector<std::size_t>{3});
  go({joint_space, &joint_operations}, {joint_space, fanout::host_memory, other_space, joint_space_too});
  CHECK(given == std::vector<std::size_t>{3});
  go({other_space, &other_operations}, {joint_space, other_space, fanout::host_memory});
  CHECK(given.empty());
  go({}, {fanout::host_memory, fanout::host_memory});
  CHECK(given.empty());
  go({}, {});
}
