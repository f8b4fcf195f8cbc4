// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/fair_mutex.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/mpi/group/rank_failures.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/group/rank_timeouts.hpp>
#include <fanout/mpi/group/rank_words.hpp>
#include <fanout/mpi/group/timed_exchange.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The exchanges that all ranks make together. So a failure of one rank becomes an exception on all of them, instead of
/// a rank that waits for ever. Borrows the mail.
class RankGroup {
 public:
  /// All ranks make it together. Throws on all if one of them has no memory for it.
  FANOUT_INLINE explicit RankGroup(const RankMail& mail);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  ~RankGroup() = default;

  const RankMail& mail() const noexcept { return mail_; }
  int rank() const noexcept { return static_cast<int>(mail_.rank()); }
  int size() const noexcept { return static_cast<int>(mail_.size()); }

  /// True if ranks were late in a step. Then no exchange follows: see Exchange.
  bool is_over() const noexcept { return is_over_; }

  /// Held while a thread uses the mail. Throws what RankMail::check_this_thread() throws.
  class Use {
   public:
    explicit Use(const RankGroup& group) : alone_(group.mutex_) { group.mail_.check_this_thread(); }

   private:
    std::lock_guard<FairMutex> alone_;
  };
  /// Held while a thread makes an exchange with all ranks. It is a Use, which agree() gives up while it waits: a rank
  /// may come only when shards of this process have sent messages, which need a Use. Throws what Use throws, and Error
  /// if ranks were late in an earlier exchange: messages of that one may still be on their way.
  class Exchange {
   public:
    explicit Exchange(const RankGroup& group) : alone_(group.exchanges_), use_(group) { group.check_goes_on(); }

   private:
    std::lock_guard<std::mutex> alone_;
    Use use_;
  };
  /// Lives as long as shards of this process may exchange messages with those of other ranks.
  class ShardsMeet {
   public:
    ShardsMeet() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    ShardsMeet(const ShardsMeet&) = delete;
    ShardsMeet& operator=(const ShardsMeet&) = delete;
    ~ShardsMeet() { count_.fetch_sub(1, std::memory_order_relaxed); }

    static bool anywhere() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

   private:
    static inline std::atomic<std::size_t> count_{0};
  };
  /// What Use holds, without its checks. The second one is not locked if another thread uses the mail.
  std::unique_lock<FairMutex> lock() const { return std::unique_lock(mutex_); }
  std::unique_lock<FairMutex> lock_if_free() const { return std::unique_lock(mutex_, std::try_to_lock); }

  /// Calls `f`, which exchanges messages. If a rank was lost, throws RankLost: on all ranks that are left, at their
  /// next exchange at the latest.
  template <class F>
  decltype(auto) guarded(const F& f) const {
    try {
      return f();
    } catch (...) {
      mail_.throw_if_lost();
      throw;
    }
  }

  using Words = RankWords;

  /// Called by the holder of an Exchange. All ranks come here with the same hash, and get the words of all. Otherwise
  /// all throw StructureMismatch, which lists what the ranks call: `name()`, which is called only then. If ranks come
  /// with an exception, all throw: see throw_failures_of_ranks(). With a deadline, which all ranks have or none, ranks
  /// that have not come by then are given up: then all throw Timeout, or their own exception, and the group is over. It
  /// is also over if ranks have failed of a Timeout only. The words are valid until the next exchange. Once this has
  /// returned, no rank waits for what another thread of a rank does.
  template <class Name>
  const std::vector<Words>& agree(Words mine, const Name& name, const std::exception_ptr& own,
                                  const backend::StepDeadline& deadline = {}) const {
    mine.failed = failed_by(own);
    if (deadline.exists()) {
      exchange_until(deadline, mine, name, own);
    } else {
      exchange_words(mine);
    }
    std::uint64_t failed = 0;
    bool same = true;
    for (const Words& each : words_) {
      failed |= each.failed;
      same = same && each.hash == mine.hash;
    }
    if (failed != 0) {
      is_over_ = is_over_ || (failed & RankWords::has_failed) == 0;
      throw_failures(own);
    }
    if (!same) throw_mismatch(name);
    return words_;
  }

  /// The same for a call by its name.
  void agree(const std::string& call, const std::exception_ptr& own, const backend::StepDeadline& deadline = {}) const {
    agree(
        {.hash = std::hash<std::string_view>()(call)}, [&call] { return call; }, own, deadline);
  }
  /// The same at a later step of a call.
  void agree(const std::exception_ptr& own) const { agree({}, own); }

  /// Calls `f`, and returns its exception, or null: for agree().
  template <class F>
  static std::exception_ptr exception_of(const F& f) noexcept {
    try {
      f();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  /// `rank 1 on node7`.
  std::string name_of(std::size_t rank) const { return mail_.name_of(rank); }
  std::string name_of_this() const { return name_of(mail_.rank()); }

  /// Called by the holder of an Exchange. Each rank gets `bytes` of each rank: `received` has room for those of all
  /// ranks, first its own, then those of the next rank, and so on. Sends log2(size) messages, each to another rank.
  /// Unlike MPI_Allgather, lets other threads use MPI while it waits. MPI_Iallgather is slower.
  FANOUT_INLINE void all_gather(void* received, std::size_t bytes) const;

 private:
  static constexpr int tests_before_yield = 100;

  FANOUT_INLINE void check_goes_on() const;

  template <class Name>
  [[noreturn, gnu::cold, gnu::noinline]] void throw_mismatch(const Name& name) const {
    constexpr std::size_t longest = 4000;
    std::string list;
    const std::vector<std::string> texts =
        exchange_texts([&] { return name_of_this() + ": " + std::string(name()).substr(0, longest); }, nullptr);
    for (const std::string& text : texts) list += "\n  " + text;
    throw StructureMismatch("ranks make calls that do not fit together; make the same calls in the same order:" + list);
  }

  [[noreturn, gnu::cold, gnu::noinline]] void throw_failures(const std::exception_ptr& own) const {
    const std::vector<std::string> texts = exchange_texts([&] { return text_of(own); }, own);
    detail::throw_failures(words_, texts, own);
  }

  /// Fills words_ with the words of all ranks.
  FANOUT_INLINE void exchange_words(const Words& mine) const;

  /// Lets other threads use MPI while it calls `f`. The caller has a Use.
  template <class F>
  void resting(const F& f) const {
    struct Rest {
      explicit Rest(FairMutex& used) : mutex(used) { mutex.unlock(); }
      Rest(const Rest&) = delete;
      Rest& operator=(const Rest&) = delete;
      ~Rest() { mutex.lock(); }
      FairMutex& mutex;
    } const rest(mutex_);
    f();
  }

  /// Fills words_ with the words of all ranks, if all come in time.
  template <class Name>
  void exchange_until(const backend::StepDeadline& deadline, const Words& mine, const Name& name,
                      const std::exception_ptr& own) const {
    std::string failure;
    static_cast<void>(exception_of([&] { failure = text_of(own); }));  // without memory, it does not say why
    if (timed_.run(mine, deadline, words_, failure, [this](const auto& wait) { this->resting(wait); })) return;
    is_over_ = true;
    if (own != nullptr) std::rethrow_exception(own);
    throw_given_up(
        timed_.given_up(), words_, mail_.rank(), [this](std::size_t i) { return name_of(i); }, name());
  }

  /// Why this rank has failed, for the others; empty if it has not.
  std::string text_of(const std::exception_ptr& own) const {
    return own == nullptr ? std::string() : failures_as_text(name_of_this(), own);
  }

  /// The text of each rank, which `make()` returns. If a rank has no memory for the texts, all ranks throw without
  /// them: `own`, unless it is null. Leaves words_ what they tell of failures.
  template <class Make>
  std::vector<std::string> exchange_texts(const Make& make, const std::exception_ptr& own) const {
    const std::size_t ranks = mail_.size();
    std::string mine;
    std::vector<std::string> texts;
    Messages messages(mail_);
    std::exception_ptr failure = exception_of([&] {
      mine = make();
      texts.resize(ranks);
      messages.reserve(2 * ranks);
    });
    exchange_memory(own, failure, mine.size());
    failure = exception_of([&] {
      for (std::size_t i = 0; i < ranks; ++i) texts[i].resize(words_[i].rows);
    });
    exchange_memory(own, failure, mine.size());
    for (std::size_t i = 1; i < ranks; ++i) {
      const std::size_t from = (mail_.rank() + ranks - i) % ranks;
      messages.receive(texts[from].data(), texts[from].size(), from, MessageTag::texts);
      messages.send(mine.data(), mine.size(), (mail_.rank() + i) % ranks, MessageTag::texts);
    }
    messages.wait();
    texts[mail_.rank()] = std::move(mine);
    return texts;
  }

  /// Tells all ranks the length of this one's text, in words_[i].rows. Throws on all of them if one has no memory.
  FANOUT_INLINE void exchange_memory(const std::exception_ptr& own, const std::exception_ptr& failure,
                                     std::size_t length) const;

  const RankMail& mail_;
  FairMutex& mutex_ = mail_.mutex();  // held while a thread uses the mail
  mutable std::mutex exchanges_;      // held during an exchange; locked before mutex_
  mutable std::atomic<bool> is_over_{false};
  // Here, so that an exchange allocates nothing:
  mutable TimedExchange timed_;
  mutable std::vector<Words> words_;     // of all ranks
  mutable std::vector<Words> received_;  // the same, beginning with this rank's
  mutable Messages gathered_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/rank_group.ipp>
#endif
