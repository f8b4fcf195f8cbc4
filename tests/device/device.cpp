// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device.hpp>

#include <fanout/device/host_device.hpp>

#include "device_conformance.hpp"
#include "toy_device.hpp"

FANOUT_TEST_DEVICE(fanout::HostDevice);
FANOUT_TEST_DEVICE(fanout_test::ToyDevice);

namespace {

enum class Lack { nothing, id, memory, worker, enter, synchronize, visible, equality, copy, assignment, const_members };

/// All that a device must have, less one thing.
template <Lack lack>
struct Archetype {
  Archetype(const Archetype&) requires(lack != Lack::copy) = default;
  Archetype& operator=(const Archetype&) requires(lack != Lack::assignment) = default;

  struct Id {
    operator fanout::DeviceId() const;
  };
  struct Memory {
    operator fanout::backend::Memory() const;
  };
  struct Entered {};
  Id id() const requires(lack != Lack::id);
  Memory memory() const requires(lack != Lack::memory);
  fanout::backend::Worker& worker() const requires(lack != Lack::worker);
  Entered enter() const requires(lack != Lack::enter && lack != Lack::const_members);
  Entered enter() requires(lack == Lack::const_members);
  void synchronize() const requires(lack != Lack::synchronize);
  static std::vector<Archetype> visible() requires(lack != Lack::visible);
  friend bool operator==(const Archetype&, const Archetype&) requires(lack != Lack::equality) { return true; }
};

static_assert(fanout::Device<Archetype<Lack::nothing>>);
static_assert(!fanout::Device<Archetype<Lack::id>>);
static_assert(!fanout::Device<Archetype<Lack::memory>>);
static_assert(!fanout::Device<Archetype<Lack::worker>>);
static_assert(!fanout::Device<Archetype<Lack::enter>>);
static_assert(!fanout::Device<Archetype<Lack::synchronize>>);
static_assert(!fanout::Device<Archetype<Lack::visible>>);
static_assert(!fanout::Device<Archetype<Lack::equality>>);
static_assert(!fanout::Device<Archetype<Lack::copy>>);
static_assert(!fanout::Device<Archetype<Lack::assignment>>);
static_assert(!fanout::Device<Archetype<Lack::const_members>>);

enum class Wrong { id, memory, worker, enter, visible };

/// Has every member, but one returns the wrong thing.
template <Wrong wrong>
struct Misfit {
  template <Wrong member, class ForkSafeMutex, class Other>
  using Returned = std::conditional_t<member == wrong, Other, ForkSafeMutex>;

  struct Entered {};
  Returned<Wrong::id, fanout::DeviceId, int> id() const;
  Returned<Wrong::memory, fanout::backend::Memory, fanout::DeviceId> memory() const;
  Returned<Wrong::worker, fanout::backend::Worker&, fanout::backend::Worker*> worker() const;
  Returned<Wrong::enter, Entered, void> enter() const;
  void synchronize() const;
  static Returned<Wrong::visible, std::vector<Misfit>, std::vector<int>> visible();
  friend bool operator==(const Misfit&, const Misfit&) = default;
};

static_assert(!fanout::Device<Misfit<Wrong::id>>);
static_assert(!fanout::Device<Misfit<Wrong::memory>>);
static_assert(!fanout::Device<Misfit<Wrong::worker>>);
static_assert(!fanout::Device<Misfit<Wrong::enter>>);
static_assert(!fanout::Device<Misfit<Wrong::visible>>);

static_assert(fanout::Device<fanout::HostDevice>);
static_assert(!fanout::Device<int>);
static_assert(!fanout::Device<fanout::backend::Worker>);
static_assert(!fanout::Device<const fanout::HostDevice>, "a device can be assigned to");

}  // namespace
