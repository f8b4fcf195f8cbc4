// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include <mpi.h>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/fair_mutex.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/group/rank_lost.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/group/thread_level.hpp>
#include <fanout/mpi/group/timed_communicator.hpp>
#include <fanout/mpi/group/ulfm.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The messages of MPI over a duplicate of the user's communicator.
class MpiMail : public RankMail {
 public:
  /// Duplicates the communicator: all its ranks must do this. `survives`: see RanksOptions; without effect if
  /// check_survives() throws. Throws Error if MPI is not initialised, is finalised, or has too low a thread level.
  /// Throws InvalidArgument for MPI_COMM_NULL and an intercommunicator. Throws MpiError.
  FANOUT_INLINE explicit MpiMail(MPI_Comm of, bool survives = false);
  /// Throws Error if a group cannot survive the loss of a rank. Apart from the constructor, so that all ranks have a
  /// group by which they learn of it.
  FANOUT_INLINE static void check_survives();
  ~MpiMail() override {
    int finalized = 0;
    if (is_kept_ || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    MPI_Comm_free(&all_);
  }

  struct Survivors {
    const MpiMail& of;
  };
  /// Of the ranks that are left. All of them make it together, and wait for all. Throws Error if the group does not
  /// survive.
  FANOUT_INLINE explicit MpiMail(const Survivors& survivors);

  MPI_Comm get() const noexcept { return all_; }

  FANOUT_INLINE Ticket send(const MessageBlocks& blocks, const Address& to) const override;
  FANOUT_INLINE Ticket receive(const MessageBlocks& blocks, const Address& from) const override;
  FANOUT_INLINE bool test(Ticket& ticket) const override;
  FANOUT_INLINE void give_up(Ticket& ticket, bool receives) const noexcept override;

  FANOUT_INLINE int largest_tag() const override;
  FANOUT_INLINE std::uint64_t process() const override;
  FairMutex& mutex() const noexcept override { return mutex_; }
  void check_this_thread() const override {
    ThreadLevel::check_running();
    thread_level_.check_this_thread();
  }
  bool allows_this_thread() const noexcept override { return thread_level_.allows_this_thread(); }
  bool allows_any_thread() const noexcept override { return thread_level_.allows_any_thread(); }
  void check_any_thread() const override { thread_level_.check_any_thread(); }
  FANOUT_INLINE void all_have_memory(const std::exception_ptr& own) const override;
  bool is_lost() const noexcept override { return Ulfm::is_revoked(all_); }
  FANOUT_INLINE void throw_if_lost() const override;
  void keep() const noexcept override { is_kept_ = true; }

 private:
  static constexpr int smallest_largest_tag = 32767;  // that MPI allows

  /// The MPI datatype of one message with all blocks, to be sent from MPI_BOTTOM. MPI keeps what it needs of it.
  class Type;

  MPI_Comm over(const Address& address) const noexcept { return address.channel == Channel::calls ? all_ : timed_; }
  int tag(const Address& address) const noexcept {
    return address.channel == Channel::calls ? address.tag : timed_tag_;
  }

  /// Sets what belongs to a new communicator, which is a duplicate of `of`, or itself.
  FANOUT_INLINE void prepare(MPI_Comm of);

  /// The ranks that were lost. Which ones these are may become known here a little after the fact.
  FANOUT_INLINE std::vector<std::size_t> lost() const;

  MPI_Comm all_ = MPI_COMM_NULL;
  const ThreadLevel thread_level_;
  mutable FairMutex own_mutex_;
  FairMutex& mutex_ = thread_level_.mutex(own_mutex_);  // held while a thread uses MPI
  bool survives_ = false;
  mutable bool is_kept_ = false;
  MPI_Comm timed_ = MPI_COMM_NULL;  // see TimedCommunicator
  int timed_tag_ = 0;
};

/// A group of ranks of MPI.
class MpiGroup : private MpiMail, public RankGroup {
 public:
  /// As MpiMail.
  explicit MpiGroup(MPI_Comm of, bool survives = false)
      : MpiMail(of, survives), RankGroup(static_cast<const RankMail&>(*this)) {}
  explicit MpiGroup(const Survivors& survivors) : MpiMail(survivors), RankGroup(static_cast<const RankMail&>(*this)) {}

  /// For MpiGroup's constructor: the ranks that are left.
  Survivors survivors() const { return {*this}; }

  using MpiMail::check_survives;
  using MpiMail::get;
  using RankGroup::rank;
  using RankGroup::size;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/mpi_mail.ipp>
#endif
