// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <mpi.h>

#include <fanout/mpi/group/mpi_error.hpp>

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
  void send(Prepared& prepared, int to, int tag, MPI_Comm over) {
    const std::lock_guard<std::mutex> alone(mutex_);
    forget_sent();
    const auto message = prepared.messages_.begin();
    message->bytes = prepared.bytes_;
    messages_.splice(messages_.end(), prepared.messages_, message);
    const int status = MPI_Isend(message->bytes->data(), static_cast<int>(message->bytes->size()), MPI_BYTE, to, tag,
                                 over, &message->request);
    if (status != MPI_SUCCESS) messages_.erase(message);
    check_mpi(status, "MPI_Isend");
  }

 private:
  void forget_sent() noexcept {
    for (auto each = messages_.begin(); each != messages_.end();) {
      int sent = 0;
      // A status other than MPI_SUCCESS also ends the message: its rank is lost.
      const int status = MPI_Test(&each->request, &sent, MPI_STATUS_IGNORE);
      each = sent != 0 || status != MPI_SUCCESS ? messages_.erase(each) : std::next(each);
    }
  }

  std::mutex mutex_;
  std::list<Message> messages_;
};

}}}  // namespace fanout::v0::detail
