// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include <fanout/collective/element_type.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// A reduction of numbers that others know as well, for processes that reduce by a library. An element may be several
/// numbers, which are all reduced alike: a complex number is two.
struct NumberFold {
  ElementType::Kind kind = ElementType::Kind::other;  ///< other if the elements are no such numbers
  std::size_t size = 0;                               ///< of a number, in bytes
  Reduction by = Reduction::sum;

  friend constexpr bool operator==(const NumberFold&, const NumberFold&) = default;
};

/// How a value is combined over processes, element by element.
struct RankFold {
  static constexpr std::size_t largest_alignment = 64;  ///< of elements that travel

  std::string (*name)();     ///< `psum of float`
  std::size_t element_size;  ///< in bytes; 0 if the value cannot travel: it is not trivially copyable, or over-aligned
  bool counts_empty;         ///< true if a process without rows counts even if others have rows
  bool may_throw;            ///< true if combine() may throw, as a user's function may
  /// Combines `count` elements of each of `from.ranks` processes, in their order, and writes them to `to`. `to` may be
  /// `from[0]`.
  void (*combine)(void* to, const RankElements& from, std::size_t count);
  NumberFold numbers = {};  ///< what combine() does, if it is a reduction of numbers
};

/// A value that is combined over processes, in place. Borrows it.
struct RankedValue {
  const RankFold* fold = nullptr;
  void* data = nullptr;
  std::size_t count = 0;
  MemorySpace space = host_memory;
  const std::size_t* extents = nullptr;  ///< valid in RankedValues::add() only
  std::size_t axes = 0;
};

/// Receives the values of a step, one by one.
class RankedValues {
 public:
  virtual void add(const RankedValue& value, const LeafPath& path) = 0;

 protected:
  ~RankedValues() = default;
};

/// One exchange of a call. Processes whose exchanges differ in their hash make calls that do not fit together. Borrows
/// what it names.
struct RankedStep {
  static constexpr std::uint32_t no_number = ~std::uint32_t{0};
  /// The hash FNV-1a, whose steps take words as well as bytes.
  static constexpr std::uint64_t hash_of_nothing = 0xCBF29CE484222325U;
  static constexpr void mix(std::uint64_t& hash, std::uint64_t word) noexcept { hash = (hash ^ word) * 0x100000001B3U; }
  static constexpr std::uint64_t hash_of(std::string_view name) noexcept {
    std::uint64_t hash = hash_of_nothing;
    for (const char letter : name) mix(hash, static_cast<unsigned char>(letter));
    return hash;
  }

  std::uint64_t hash = 0;
  std::string_view name = {};     ///< of what all processes must do
  std::string_view returns = {};  ///< the type that it returns, or empty
  std::uint32_t model = 0;        ///< ProcessRanks::number_model() of the model
  std::uint32_t number = 0;       ///< of the call, or no_number
  std::size_t rows = 0;           ///< of this process
  std::size_t shards = 0;
  std::exception_ptr failure = nullptr;                           ///< why this process cannot go on
  void (*visit)(const void* of, RankedValues& values) = nullptr;  ///< shows the values that are combined, if any
  const void* of = nullptr;
  StepDeadline deadline = {};
  // Of a step that begins a call:
  const Plan* plan = nullptr;
  const DeviceId* devices = nullptr;                 ///< those of the set
  const CollectiveTransport* collectives = nullptr;  ///< Options::collectives
  std::uint32_t* random_call = nullptr;  ///< the call's number for random numbers; set to that of the first process
  bool* is_made = nullptr;               ///< set to true when all processes have made the step: later ones throw alone
};

/// The processes that call a model together, each with its own rows: the ranks of an MPI program (mpi::Ranks). All of
/// them make the same steps in the same order. A step throws on all of them if one has a failure or makes another step.
/// If a step has a deadline and a process has not come by then, it throws Timeout on all: on a late process when it
/// comes. After that, all steps may throw Error. Options::ranks selects it for a model. Must live as long as the model.
class ProcessRanks {
 public:
  virtual std::size_t rank() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;

  /// Numbers the models that are called together, so that two of one type are told apart. All processes make their
  /// models in the same order. Exchanges nothing. Thread-safe.
  std::uint32_t number_model() const noexcept { return models_.fetch_add(1, detail::MemoryOrder::relaxed); }

  /// Begins a call. Returns where this process's shards stand in the whole batch. If `rendezvous` is not null, sets it
  /// to a new one for the shards of all processes, which the caller must delete, also if this throws. If the step's
  /// `collectives` join the processes, devices run collectives there.
  virtual detail::BatchPlace begin(const RankedStep& step, ProcessRendezvous** rendezvous) const = 0;

  /// Replaces each value of the step by that of all processes, in their order. So the result is bitwise the same on all
  /// of them and in every run. Nothing is sent before all processes have come without a failure.
  virtual void combine(const RankedStep& step) const = 0;

  /// Throws Error if only the main thread may make steps and exchange arrays.
  virtual void check_any_thread() const {}

 protected:
  ~ProcessRanks() = default;

 private:
  mutable detail::Atomic<std::uint32_t> models_{0};
};

}}}  // namespace fanout::v0::backend
