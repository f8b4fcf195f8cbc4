// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/handoff_slot.hpp>

#include <cstddef>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::DeviceLock;
using fanout::detail::HandoffSlot;

/// The body of a request.
struct Body {
  Plain<int> asked{0};
  mutable Plain<int> runs{0};

  static fanout::detail::Atomic<bool>* run(const void* body, std::size_t) noexcept {
    const auto& self = *static_cast<const Body*>(body);
    self.runs.set(self.runs.get() + self.asked.get());
    return nullptr;
  }
  HandoffSlot::Request request() const {
    return {.run = &Body::run, .body = this, .shard = 0, .rules = nullptr, .takes = 0, .woken_at = 0};
  }
};

/// What the device's thread does: polls until a request comes, then runs it.
void serve(HandoffSlot& handoff) {
  const HandoffSlot::Request* request = nullptr;
  while ((request = handoff.begin()) == nullptr) fanout::detail::pause();
  handoff.complete(request->run(request->body, request->shard));
}

void post_to_a_thread_that_polls() {
  HandoffSlot handoff;
  Body body;
  handoff.start_polling();
  run([&] { serve(handoff); },
      [&] {
        body.asked.set(1);
        const HandoffSlot::Ticket ticket = handoff.post(body.request());
        check(ticket != 0 && (ticket & HandoffSlot::revocable) == 0, "the device is free");
        check(handoff.await(ticket, 0, 0), "the request is answered");
        check(body.runs.get() == 1, "it has been run");
      });
}

/// The thread starts polling while a request is posted. The poster may take the request back.
void take_back() {
  HandoffSlot handoff;
  Body body;
  bool back = false;
  run(
      [&] {
        handoff.start_polling();
        if (const HandoffSlot::Request* request = handoff.begin()) {
          handoff.complete(request->run(request->body, request->shard));
        }
      },
      [&] {
        body.asked.set(1);
        const HandoffSlot::Ticket ticket = handoff.post(body.request());
        check(ticket != 0, "the device is free");
        back = handoff.take_back(ticket);
        if (back) handoff.run_taken_back();
        if (!back && (ticket & HandoffSlot::revocable) != 0) {
          check(handoff.await(ticket, 0, 0), "the request is answered");
        }
      });
  check(!handoff.has_request() || !back, "a request that was taken back is gone");
  if (back) check(body.runs.get() == 1, "the request has been run once");
}

/// One thread holds the device for a while, and another one posts a request.
void hold_and_post() {
  HandoffSlot handoff;
  Body body;
  handoff.start_polling();
  int posted = 0;
  run([&] { serve(handoff); },
      [&] {
        const DeviceLock held(handoff);
        body.asked.set(body.asked.get() + 1);
      },
      [&] {
        HandoffSlot::Ticket ticket = 0;
        while ((ticket = handoff.post(body.request())) == 0) handoff.lock(), handoff.unlock();
        check(handoff.await(ticket, 0, 0), "the request is answered");
        posted = 1;
      });
  check(posted == 1 && body.runs.get() <= 1, "the request has been run once");
}

void two_hold() {
  HandoffSlot handoff;
  Plain<int> count(0);
  const auto body = [&] {
    const DeviceLock held(handoff);
    count.set(count.get() + 1);
  };
  run(body, body);
  check(count.get() == 2, "each thread has held the device once");
}

/// The thread stops polling while a request is posted.
void stop_polling() {
  HandoffSlot handoff;
  Body body;
  handoff.start_polling();
  bool stopped = false;
  run(
      [&] {
        stopped = handoff.stop_polling();
        if (!stopped) serve(handoff);
      },
      [&] {
        body.asked.set(1);
        const HandoffSlot::Ticket ticket = handoff.post(body.request());
        if ((ticket & HandoffSlot::revocable) == 0) {
          check(handoff.await(ticket, 0, 0), "the request is answered");
          check(body.runs.get() == 1, "it has been run");
        } else {
          check(handoff.take_back(ticket), "no thread has begun it");
          handoff.run_taken_back();
        }
      });
}

}  // namespace

Protocol handoff_slot() {
  using enum Fault::How;
  const char* const header = "worker/handoff_slot.hpp";
  return {
      "handoff_slot",
      {{"post to a thread that polls", post_to_a_thread_that_polls},
       {"take back", take_back},
       {"hold and post", hold_and_post, {.surprises = 1}},
       {"two hold", two_hold},
       {"stop polling", stop_polling}},
      {
          {header, "word_.compare_exchange_weak(seen, seen + held, MemoryOrder::acquire)", torn, "hold and post"},
          {header, "while (!word_.compare_exchange_weak(seen, freed(seen), MemoryOrder::acq_rel))", relaxed,
           "hold and post"},
          {header, "if ((seen & wanted) != 0) unpark_all(word_)", skipped, "hold and post"},
          {header, "while (!word_.compare_exchange_weak(seen, seen + claimed, MemoryOrder::acquire));", torn,
           "hold and post"},
          {header, "word_.compare_exchange_weak(seen, seen - posted + held, MemoryOrder::acq_rel)", torn, "take back"},
          {header, "word_.store(seen + running, MemoryOrder::release)", relaxed, "post to a thread that polls"},
          {header, "return !is_of(word_.load(MemoryOrder::acquire), request);", relaxed, "post to a thread that polls"},
          {header, "word_.compare_exchange_weak(seen, seen + polling, MemoryOrder::acq_rel)", torn, "take back"},
          {header, "word_.compare_exchange_weak(seen, seen - polling, MemoryOrder::acq_rel)", torn, "stop polling"},
          {header, "word_.compare_exchange_weak(seen, seen - posted + running, MemoryOrder::acq_rel)", torn,
           "take back"},
          {header, "if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0)", torn,
           "post to a thread that polls"},
          {header, "if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0)", relaxed,
           "post to a thread that polls"},
          {header, "word_.compare_exchange_strong(seen, seen | wanted, MemoryOrder::acq_rel)", torn,
           "post to a thread that polls"},
          {header, "MemoryOrder::acq_rel) & wanted) != 0) unpark_all(word_)", skipped, "post to a thread that polls"},
      }};
}

}  // namespace interleavings
