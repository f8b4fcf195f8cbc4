// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/mailbox.hpp>

#include <cstddef>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::HeldDevice;
using fanout::detail::Mailbox;

/// The body of a request.
struct Body {
  Plain<int> asked{0};
  mutable Plain<int> runs{0};

  static fanout::detail::Atomic<bool>* run(const void* body, std::size_t) noexcept {
    const auto& self = *static_cast<const Body*>(body);
    self.runs.set(self.runs.get() + self.asked.get());
    return nullptr;
  }
  Mailbox::Request request() const {
    return {.run = &Body::run, .body = this, .shard = 0, .rules = nullptr, .takes = 0, .woken_at = 0};
  }
};

/// What the device's thread does: polls until a request comes, then runs it.
void serve(Mailbox& mailbox) {
  const Mailbox::Request* request = nullptr;
  while ((request = mailbox.begin()) == nullptr) fanout::detail::pause();
  mailbox.answer(request->run(request->body, request->shard));
}

void post_to_one_that_attends() {
  Mailbox mailbox;
  Body body;
  mailbox.attend();
  run([&] { serve(mailbox); },
      [&] {
        body.asked.set(1);
        const Mailbox::Ticket ticket = mailbox.post(body.request());
        check(ticket != 0 && (ticket & Mailbox::revocable) == 0, "the device is free");
        check(mailbox.await(ticket, 0, 0), "the request is answered");
        check(body.runs.get() == 1, "it has been run");
      });
}

/// The thread begins to attend while a request is posted. The poster may take the request back.
void take_back() {
  Mailbox mailbox;
  Body body;
  bool back = false;
  run(
      [&] {
        mailbox.attend();
        if (const Mailbox::Request* request = mailbox.begin()) {
          mailbox.answer(request->run(request->body, request->shard));
        }
      },
      [&] {
        body.asked.set(1);
        const Mailbox::Ticket ticket = mailbox.post(body.request());
        check(ticket != 0, "the device is free");
        back = mailbox.take_back(ticket);
        if (back) mailbox.run_taken_back();
        if (!back && (ticket & Mailbox::revocable) != 0) {
          check(mailbox.await(ticket, 0, 0), "the request is answered");
        }
      });
  check(!mailbox.has_request() || !back, "a request that was taken back is gone");
  if (back) check(body.runs.get() == 1, "the request has been run once");
}

/// One thread holds the device for a while, and another one posts a request.
void hold_and_post() {
  Mailbox mailbox;
  Body body;
  mailbox.attend();
  int posted = 0;
  run([&] { serve(mailbox); },
      [&] {
        const HeldDevice held(mailbox);
        body.asked.set(body.asked.get() + 1);
      },
      [&] {
        Mailbox::Ticket ticket = 0;
        while ((ticket = mailbox.post(body.request())) == 0) mailbox.take(), mailbox.give();
        check(mailbox.await(ticket, 0, 0), "the request is answered");
        posted = 1;
      });
  check(posted == 1 && body.runs.get() <= 1, "the request has been run once");
}

void two_hold() {
  Mailbox mailbox;
  Plain<int> count(0);
  const auto body = [&] {
    const HeldDevice held(mailbox);
    count.set(count.get() + 1);
  };
  run(body, body);
  check(count.get() == 2, "each thread has held the device once");
}

/// The thread stops attending while a request is posted.
void stop_attending() {
  Mailbox mailbox;
  Body body;
  mailbox.attend();
  bool stopped = false;
  run(
      [&] {
        stopped = mailbox.stop_attending();
        if (!stopped) serve(mailbox);
      },
      [&] {
        body.asked.set(1);
        const Mailbox::Ticket ticket = mailbox.post(body.request());
        if ((ticket & Mailbox::revocable) == 0) {
          check(mailbox.await(ticket, 0, 0), "the request is answered");
          check(body.runs.get() == 1, "it has been run");
        } else {
          check(mailbox.take_back(ticket), "no thread has begun it");
          mailbox.run_taken_back();
        }
      });
}

}  // namespace

Protocol mailbox() {
  using enum Fault::How;
  const char* const header = "worker/mailbox.hpp";
  return {
      "mailbox",
      {{"post to one that attends", post_to_one_that_attends},
       {"take back", take_back},
       {"hold and post", hold_and_post, {.surprises = 1}},
       {"two hold", two_hold},
       {"stop attending", stop_attending}},
      {
          {header, "word_.compare_exchange_weak(seen, seen + held, MemoryOrder::acquire)", torn, "hold and post"},
          {header, "while (!word_.compare_exchange_weak(seen, freed(seen), MemoryOrder::acq_rel))", relaxed,
           "hold and post"},
          {header, "if ((seen & wanted) != 0) unpark_all(word_)", skipped, "hold and post"},
          {header, "while (!word_.compare_exchange_weak(seen, seen + claimed, MemoryOrder::acquire));", torn,
           "hold and post"},
          {header, "word_.compare_exchange_weak(seen, seen - posted + held, MemoryOrder::acq_rel)", torn, "take back"},
          {header, "word_.store(seen + running, MemoryOrder::release)", relaxed, "post to one that attends"},
          {header, "return !is_of(word_.load(MemoryOrder::acquire), request);", relaxed, "post to one that attends"},
          {header, "word_.compare_exchange_weak(seen, seen + attending, MemoryOrder::acq_rel)", torn, "take back"},
          {header, "word_.compare_exchange_weak(seen, seen - attending, MemoryOrder::acq_rel)", torn, "stop attending"},
          {header, "word_.compare_exchange_weak(seen, seen - posted + running, MemoryOrder::acq_rel)", torn,
           "take back"},
          {header, "if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0)", torn,
           "post to one that attends"},
          {header, "if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0)", relaxed,
           "post to one that attends"},
          {header, "word_.compare_exchange_strong(seen, seen | wanted, MemoryOrder::acq_rel)", torn,
           "post to one that attends"},
          {header, "MemoryOrder::acq_rel) & wanted) != 0) unpark_all(word_)", skipped, "post to one that attends"},
      }};
}

}  // namespace interleavings
