// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Tells all processes of a call if one of them has released its devices, since a rank has failed or was late: the
/// devices of the others may wait for those. Each process sends one word to each other one with devices: word_of() at
/// once, or 0 when its shards have ended. The caller of each function may use MPI. Borrows all.
class ReleaseMail {
 public:
  /// Why devices were released: this rank has failed or, if `late`, its process waits no more for ranks that are late.
  struct Reason {
    std::size_t culprit;
    bool late;
  };
  static std::uint64_t word_of(const Reason& why) noexcept {
    return std::uint64_t{why.culprit + 1} << 1 | std::uint64_t{why.late};
  }
  /// `word` must not be 0.
  static Reason reason_of(std::uint64_t word) noexcept { return {.culprit = (word >> 1) - 1, .late = (word & 1) != 0}; }

  /// Begins to receive.
  FANOUT_INLINE ReleaseMail(const RankMail& mail, const RendezvousPlaces& places, std::size_t process);

  /// Sends this process's word. A second call does nothing.
  FANOUT_INLINE void send(std::uint64_t word);

  /// Returns the word of a process that has released its devices, or 0. Does not wait.
  FANOUT_INLINE std::uint64_t poll();

  /// True if all processes have sent their words, and know that of this one.
  FANOUT_INLINE bool is_done();

 private:
  std::size_t missing() const noexcept { return others_.size() - received_; }

  /// Another process.
  struct Other {
    std::size_t process;
    std::uint64_t word = 0;
    bool has_come = false;
    RankMail::Ticket receives{};
    RankMail::Ticket sends{};
  };

  const RankMail& mail_;
  int tag_ = 0;
  std::vector<Other> others_;
  std::size_t received_ = 0;
  std::uint64_t word_ = 0;
  std::uint64_t heard_ = 0;
  bool has_sent_ = false;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/release_mail.ipp>
#endif
