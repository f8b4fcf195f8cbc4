// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/mpi_mail.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class MpiMail::Type {
 public:
  explicit Type(const MessageBlocks& blocks) {
    static_assert(std::is_same_v<MPI_Aint, std::intptr_t>);
    check_mpi(MPI_Type_create_hindexed(static_cast<int>(blocks.count()), blocks.sizes(), blocks.addresses(), MPI_BYTE,
                                       &type_),
              "MPI_Type_create_hindexed");
    if (const int status = MPI_Type_commit(&type_); status != MPI_SUCCESS) {
      MPI_Type_free(&type_);
      check_mpi(status, "MPI_Type_commit");
    }
  }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  ~Type() { MPI_Type_free(&type_); }

  MPI_Datatype get() const noexcept { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

MpiMail::MpiMail(MPI_Comm of, bool survives) : survives_(survives && Ulfm::is_enabled()) {
  if (of == MPI_COMM_NULL) {
    throw InvalidArgument(explain({.what = "no communicator", .where = "mpi::Ranks", .found = "MPI_COMM_NULL"}));
  }
  int joins_two_groups = 0;
  check_mpi(MPI_Comm_test_inter(of, &joins_two_groups), "MPI_Comm_test_inter");
  if (joins_two_groups != 0) {
    throw InvalidArgument(explain({.what = "a communicator between two groups of ranks",
                                   .where = "mpi::Ranks",
                                   .expected = "an intracommunicator",
                                   .found = "an intercommunicator",
                                   .advice = "make one of both groups by MPI_Intercomm_merge"}));
  }
  check_mpi(MPI_Comm_dup(of, &all_), "MPI_Comm_dup");
  prepare(of);
}

void MpiMail::check_survives() {
  if (Ulfm::is_enabled()) return;
  throw Error(explain({.what = "RanksOptions::survive with an MPI that ends the job if a rank dies",
                       .expected = "an MPI with ULFM that was started with it",
                       .advice = "use Open MPI 5 and start the program with mpirun --with-ft ulfm, or leave out "
                                 ".survive"}));
}

MpiMail::MpiMail(const Survivors& survivors) : thread_level_(survivors.of.thread_level_), survives_(true) {
  const std::lock_guard<FairMutex> use(survivors.of.mutex());
  survivors.of.check_this_thread();
  if (!survivors.of.survives_) {
    throw Error(explain({.what = "ranks that do not survive the loss of one",
                         .where = "Ranks::shrink",
                         .expected = "RanksOptions::survive",
                         .advice = "make them with Ranks{communicator, {.survive = true}}"}));
  }
  all_ = Ulfm::shrink(survivors.of.all_);
  prepare(all_);
}

void MpiMail::prepare(MPI_Comm of) {
  try {
    // A duplicate has inherited the user's error handler, which may end the program.
    if (survives_) {
      Ulfm::revoke_if_lost(all_);
    } else {
      check_mpi(MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    int rank = 0;
    int size = 1;
    check_mpi(MPI_Comm_rank(all_, &rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(all_, &size), "MPI_Comm_size");
    rank_ = static_cast<std::size_t>(rank);
    std::unique_ptr<TimedCommunicator> memory;
    MpiMail::all_have_memory(RankGroup::exception_of([&] {
      hosts_.resize(static_cast<std::size_t>(size));
      memory = std::make_unique<TimedCommunicator>();
    }));
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    check_mpi(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
    Host own;
    std::copy_n(name, std::min<std::size_t>(sizeof own.name - 1, sizeof name), own.name);
    check_mpi(MPI_Allgather(&own, sizeof own, MPI_CHAR, hosts_.data(), sizeof own, MPI_CHAR, all_), "MPI_Allgather");
    TimedCommunicator& timed = TimedCommunicator::of(of, std::move(memory));
    timed_ = timed.over;
    timed_tag_ = timed.next_tag(MpiMail::largest_tag());
  } catch (...) {
    MPI_Comm_free(&all_);
    throw;
  }
}

RankMail::Ticket MpiMail::send(const MessageBlocks& blocks, const Address& to) const {
  const int rank = static_cast<int>(to.rank);
  MPI_Request request = MPI_REQUEST_NULL;
  if (blocks.count() == 1) {
    check_mpi(MPI_Isend(reinterpret_cast<const void*>(blocks.addresses()[0]), blocks.sizes()[0], MPI_BYTE, rank,
                        tag(to), over(to), &request),
              "MPI_Isend");
  } else {
    check_mpi(MPI_Isend(MPI_BOTTOM, 1, Type(blocks).get(), rank, tag(to), over(to), &request), "MPI_Isend");
  }
  Ticket ticket{.is_open = true};
  std::memcpy(&ticket.number, &request, sizeof request);
  return ticket;
}

RankMail::Ticket MpiMail::receive(const MessageBlocks& blocks, const Address& from) const {
  const int rank = static_cast<int>(from.rank);
  MPI_Request request = MPI_REQUEST_NULL;
  if (blocks.count() == 1) {
    check_mpi(MPI_Irecv(reinterpret_cast<void*>(blocks.addresses()[0]), blocks.sizes()[0], MPI_BYTE, rank, tag(from),
                        over(from), &request),
              "MPI_Irecv");
  } else {
    check_mpi(MPI_Irecv(MPI_BOTTOM, 1, Type(blocks).get(), rank, tag(from), over(from), &request), "MPI_Irecv");
  }
  Ticket ticket{.is_open = true};
  std::memcpy(&ticket.number, &request, sizeof request);
  return ticket;
}

bool MpiMail::test(Ticket& ticket) const {
  static_assert(sizeof(MPI_Request) <= sizeof ticket.number);
  if (!ticket.is_open) return true;
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &ticket.number, sizeof request);
  int done = 0;
  const int status = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  ticket.is_open = status == MPI_SUCCESS ? done == 0 : request != MPI_REQUEST_NULL;
  check_mpi(status, "MPI_Test");
  return done != 0;
}

void MpiMail::give_up(Ticket& ticket, bool receives) const noexcept {
  if (!ticket.is_open) return;
  ticket.is_open = false;
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &ticket.number, sizeof request);
  if (Ulfm::is_revoked(all_)) {  // it ends with an error; until then, MPI uses the memory
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (receives) {
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Request_free(&request);
  }
}

int MpiMail::largest_tag() const {
  void* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(all_, MPI_TAG_UB, &largest, &found), "MPI_Comm_get_attr");
  return found != 0 ? *static_cast<int*>(largest) : smallest_largest_tag;
}

std::uint64_t MpiMail::process() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return static_cast<std::uint64_t>(rank);
}

void MpiMail::all_have_memory(const std::exception_ptr& own) const {
  int failed = own == nullptr ? 0 : static_cast<int>(rank_) + 1;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, all_), "MPI_Allreduce");
  if (own != nullptr) std::rethrow_exception(own);
  if (failed == 0) return;
  throw Error("mpi::Ranks were not made, since rank " + std::to_string(failed - 1) + " had no memory for them");
}

void MpiMail::throw_if_lost() const {
  try {
    throw;
  } catch (const mpi::MpiError& error) {
    if (survives_ && (Ulfm::is_loss(error.code()) || Ulfm::is_revoked(all_))) throw mpi::RankLost(lost());
  } catch (...) {
  }
}

std::vector<std::size_t> MpiMail::lost() const {
  const Clock::Time end = Clock::after(std::chrono::seconds(2));
  for (const GrowingPause pause;; pause(end)) {
    std::vector<std::size_t> ranks = Ulfm::lost(all_);
    if (!ranks.empty() || Clock::now() >= end) return ranks;
    int is_there = 0;
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);  // so that MPI looks for news
  }
}

}}}  // namespace fanout::v0::detail
