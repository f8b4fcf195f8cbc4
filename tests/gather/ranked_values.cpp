// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/gather/ranked_values.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>
#include <support/message_of.hpp>
#include <support/thread_ranks.hpp>

// Threads stand for ranks. What ranks combine of types that fanout knows is in tests/call/ranked_steps.cpp.

namespace ranked_values_test {

/// Numbers that fanout cannot look into, combined by rules of their own: `Shows` tells those of several ranks.
template <bool shows>
struct OwnNumbers {
  OwnNumbers() = default;
  explicit OwnNumbers(std::vector<double> all) : numbers_(std::move(all)) {}
  OwnNumbers(const OwnNumbers&) = default;
  OwnNumbers& operator=(const OwnNumbers&) = default;
  ~OwnNumbers() {}  // so it is no plain struct

  const std::vector<double>& numbers() const { return numbers_; }
  std::vector<double>& numbers() { return numbers_; }

 private:
  std::vector<double> numbers_;
};
using Shown = OwnNumbers<true>;
using Hidden = OwnNumbers<false>;

/// Combined as a whole, by a function that may throw. The ranks must then agree on failures.
struct Whole {
  double part;
};
struct AddParts {
  Whole operator()(const Whole& a, const Whole& b) const { return {a.part + b.part}; }
};
static_assert(fanout::detail::FoldWholeOverRanks<AddParts, Whole>::may_throw);
static_assert(!fanout::detail::FoldOverRanks<fanout::rules::Sum, double>::may_throw);

}  // namespace ranked_values_test

template <class Rule, bool shows>
struct fanout::gather_traits<Rule, ranked_values_test::OwnNumbers<shows>> {
  using type = ranked_values_test::OwnNumbers<shows>;

  static type gather(const ShardResults<type>& results, const GatherTarget&, const LeafPath&) {
    type all = results[0];
    for (std::size_t i = 1; i < results.size(); ++i) {
      for (std::size_t k = 0; k < all.numbers().size(); ++k) all.numbers()[k] += results[i].numbers()[k];
    }
    return all;
  }

  static void visit_numbers(type& result, const LeafPath& path, const auto& f) requires shows {
    f(std::span<double>(result.numbers()), path);
  }
};

namespace {

using fanout::ParallelModel;
using fanout_test::on_thread_ranks;
using fanout_test::ThreadRanks;
using ranked_values_test::Hidden;
using ranked_values_test::Shown;

std::vector<int> rows_of(std::size_t rank) { return std::vector<int>(2 * rank + 1); }

}  // namespace

TEST_CASE("the numbers that own gather_traits show are combined over ranks, also inside of trees") {
  on_thread_ranks(3, [](const ThreadRanks& ranks) {
    const ParallelModel model{
        [](std::span<const int> rows) {
          const auto n = static_cast<double>(rows.size());
          return std::tuple{fanout::psum(std::vector<Shown>{Shown({n, 10 * n})}), fanout::psum(n)};
        },
        fanout::host_devices(2),
        {.ranks = &ranks}};
    const auto [own, rows] = model(rows_of(ranks.rank()));
    CHECK(rows == 9);
    CHECK(own[0].numbers() == std::vector<double>{9, 90});
  });
}

TEST_CASE("without a rule, own gather_traits stay with their rank") {
  on_thread_ranks(2, [](const ThreadRanks& ranks) {
    const ParallelModel model{[](std::span<const int> rows) {
                                const auto n = static_cast<double>(rows.size());
                                return std::tuple{Shown({n}), Hidden({n}), fanout::psum(n)};
                              },
                              fanout::host_devices(2),
                              {.ranks = &ranks}};
    const auto [shown, hidden, rows] = model(rows_of(ranks.rank()));
    const double own_rows = 2 * static_cast<double>(ranks.rank()) + 1;
    CHECK(shown.numbers()[0] == own_rows);
    CHECK(hidden.numbers()[0] == own_rows);
    CHECK(rows == 4);
  });
}

TEST_CASE("a reduction by own gather_traits that show no numbers is refused over ranks, not left uncombined") {
  const auto sums = [](std::span<const int> rows) { return fanout::psum(Hidden({static_cast<double>(rows.size())})); };
  on_thread_ranks(2, [&sums](const ThreadRanks& ranks) {
    const ParallelModel model{sums, fanout::host_devices(2), {.ranks = &ranks}};
    const std::string text = fanout_test::message_of<fanout::Error>([&] { model(rows_of(ranks.rank())); });
    CHECK(text.find("psum of ranked_values_test::OwnNumbers<false>, whose gather_traits have no visit_numbers") !=
          std::string::npos);
  });
  CHECK(ParallelModel{sums, fanout::host_devices(2)}(rows_of(3)).numbers()[0] == 7);
}
