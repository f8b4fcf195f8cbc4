// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Small messages that nobody waits for. Each one owns its bytes until MPI has sent them, which may be after its
/// communicator was freed: a rank that never arrives never receives them. The process shares the list, and never
/// destroys it.
class KeptMessages {
  struct Message {
    std::shared_ptr<const std::string> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

 public:
  KeptMessages() = default;
  KeptMessages(const KeptMessages&) = delete;
  KeptMessages& operator=(const KeptMessages&) = delete;

  static KeptMessages& of_process() {
    static auto& messages = *new KeptMessages;
    return messages;
  }

  /// A message that has all its memory, so that sending it allocates nothing.
  class Prepared {
   public:
    Prepared() = default;
    /// A message of at most so many bytes, for so many ranks. Throws std::bad_alloc.
    Prepared(std::size_t most_bytes, std::size_t ranks) : bytes_(std::make_shared<std::string>()), messages_(ranks) {
      bytes_->reserve(most_bytes);
    }

    explicit operator bool() const noexcept { return bytes_ != nullptr; }
    /// What is sent. Must not be changed after the first send().
    std::string& bytes() noexcept { return *bytes_; }

   private:
    friend class KeptMessages;
    std::shared_ptr<std::string> bytes_;
    std::list<Message> messages_;
  };

  /// Sends the bytes to a rank. Does not wait. Throws MpiError.
  FANOUT_INLINE void send(Prepared& prepared, int to, int tag, MPI_Comm over);

 private:
  FANOUT_INLINE void forget_sent() noexcept;

  std::mutex mutex_;
  std::list<Message> messages_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/kept_messages.ipp>
#endif
