// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/reduction/ordered_reduction.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <mpi/threads/thread_mail.hpp>
#include <support/message_of.hpp>

// Values of many sizes are combined in the order of the ranks, by a fold that depends on that order.

namespace {

using fanout::backend::RankedValue;
using fanout::backend::RankElements;
using fanout::backend::RankFold;
using fanout::detail::OrderedReduction;
using fanout::detail::RankGroup;

constexpr std::byte next(std::byte so_far, std::byte x) {
  return static_cast<std::byte>(31 * std::to_integer<unsigned>(so_far) + std::to_integer<unsigned>(x) + 1);
}

template <std::size_t element>
void combine_bytes(void* to, const RankElements& from, std::size_t count) {
  for (std::size_t i = 0; i < count * element; ++i) {
    std::byte all{};
    for (std::size_t rank = 0; rank < from.ranks; ++rank) {
      all = next(all, static_cast<const std::byte*>(from[rank])[i]);
    }
    static_cast<std::byte*>(to)[i] = all;
  }
}

template <std::size_t element, bool counts_empty = false>
constexpr RankFold fold{.name = nullptr,
                        .element_size = element,
                        .counts_empty = counts_empty,
                        .may_throw = false,
                        .combine = &combine_bytes<element>};

struct Size {
  const RankFold* fold;
  std::size_t count;
};

std::byte byte_of(std::size_t rank, std::size_t value, std::size_t i) {
  return static_cast<std::byte>(rank * 101 + value * 13 + i * 7 + (i >> 8U));
}

/// Combines values of these sizes. Rank r counts if `counts[r]`.
void check_combines(const RankGroup& group, const std::vector<Size>& sizes, const std::vector<bool>& counts) {
  const auto own = static_cast<std::size_t>(group.rank());
  std::vector<std::vector<std::byte>> memory(sizes.size());
  std::vector<RankedValue> values;
  for (std::size_t v = 0; v < sizes.size(); ++v) {
    memory[v].resize(sizes[v].count * sizes[v].fold->element_size);
    for (std::size_t i = 0; i < memory[v].size(); ++i) memory[v][i] = byte_of(own, v, i);
    values.push_back({.fold = sizes[v].fold, .data = memory[v].data(), .count = sizes[v].count});
  }
  OrderedReduction(group, values).run(counts);
  std::size_t wrong = 0;
  for (std::size_t v = 0; v < sizes.size(); ++v) {
    for (std::size_t i = 0; i < memory[v].size(); ++i) {
      std::byte all{};
      for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        if (sizes[v].fold->counts_empty || counts[rank]) all = next(all, byte_of(rank, v, i));
      }
      if (memory[v][i] != all) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

/// Calls `f(group, all)` on ranks that exchange values, where `all` is true for each rank.
template <class F>
void exchange_on(std::size_t ranks, const F& f) {
  fanout_test::on_ranks(ranks, [&] {
    const fanout_test::ThreadGroup ranks_here;
    const RankGroup::Exchange exchange(ranks_here.group);
    f(ranks_here.group, std::vector<bool>(ranks, true));
  });
}

}  // namespace

TEST_CASE("values of any size are combined in the order of the ranks") {
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    exchange_on(ranks, [ranks](const RankGroup& group, [[maybe_unused]] const std::vector<bool>& all) {
      check_combines(group, {}, all);
      check_combines(group, {{&fold<8>, 0}}, all);
      check_combines(group, {{&fold<8>, 1}}, all);
      for (const std::size_t count : {126U, 127U, 128U, 129U})
        check_combines(group, {{&fold<1>, 3}, {&fold<8>, count}}, all);
      check_combines(group,
                     {{&fold<4>, ranks <= 2 ? 300'003U : 10'003U},
                      {&fold<8>, 1},
                      {&fold<1>, 3},
                      {&fold<4>, 0},
                      {&fold<24>, 77},
                      {&fold<2>, 5}},
                     all);
      check_combines(group, {{&fold<(1 << 14) + 8>, 5}, {&fold<1>, 1}}, all);  // elements larger than a slice
      std::vector<Size> many;
      for (std::size_t i = 0; i < 600; ++i) many.push_back({i % 3 == 0 ? &fold<8> : &fold<4>, i % 300});
      check_combines(group, many, all);
    });
  }
}

TEST_CASE("ranks that do not count are left out, but for values that always count") {
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    exchange_on(ranks, [](const RankGroup& group, [[maybe_unused]] const std::vector<bool>& all) {
      for (std::size_t only = 0; only < all.size(); ++only) {
        std::vector<bool> counts(all.size(), false);
        counts[only] = true;
        check_combines(group, {{&fold<8>, 1000}, {&fold<4, true>, 77}, {&fold<1>, 1}}, counts);
      }
    });
  }
}

TEST_CASE("a rank that cannot combine its slice throws its own exception, and the others an Error that names it") {
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    exchange_on(ranks, [](const RankGroup& group, [[maybe_unused]] const std::vector<bool>& all) {
      constexpr RankFold throws{.name = nullptr,
                                .element_size = 8,
                                .counts_empty = false,
                                .may_throw = true,
                                .combine = [](void*, const RankElements& from, std::size_t) {
                                  if (*static_cast<const std::uint64_t*>(from[0]) == 0) throw fanout::Error("no sum");
                                }};
      std::vector<std::uint64_t> numbers(1000, 1);
      numbers[0] = 0;  // in the slice of rank 0
      const std::vector<RankedValue> values{{.fold = &throws, .data = numbers.data(), .count = numbers.size()}};
      const std::string text =
          fanout_test::message_of<fanout::Error>([&] { OrderedReduction(group, values).run(all); });
      CHECK((text == "no sum") == (group.rank() == 0));
      CHECK(text.find("no sum") != std::string::npos);
    });
  }
}
