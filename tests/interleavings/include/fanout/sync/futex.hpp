// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <type_traits>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

// Replaces the library's header: threads of the modelled machine sleep and wake.

namespace fanout { inline namespace v0 { namespace detail {

template <class Word>
void park(const Atomic<Word>& word, std::type_identity_t<Word> expected,
          const interleavings::Place& place = interleavings::Place::current()) noexcept {
  interleavings::Machine::now()->park(&word, static_cast<std::uint32_t>(expected), Clock::never, place);
}

template <class Word>
void park_until(const Atomic<Word>& word, std::type_identity_t<Word> expected, Clock::Time until,
                const interleavings::Place& place = interleavings::Place::current()) noexcept {
  interleavings::Machine::now()->park(&word, static_cast<std::uint32_t>(expected), until, place);
}

template <class Word>
void unpark_all(const Atomic<Word>& word,
                const interleavings::Place& place = interleavings::Place::current()) noexcept {
  interleavings::Machine::now()->unpark_all(&word, place);
}

inline void pause() noexcept { interleavings::Machine::now()->pause(); }

}}}  // namespace fanout::v0::detail
