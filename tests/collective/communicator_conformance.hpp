// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fanout/collective/communicator.hpp asks of a communicator, requirement by requirement. `Ranks` says how to make
// them:
//
// struct MyRanks {
//     using communicator = MyCommunicator;
//     template <class F> static void run(std::size_t ranks, const F& f);  // f(communicator) on each rank, then joins
//     template <class T> static fanout::Tensor<T, 1> array(std::size_t rank, std::vector<T> elements);
//     template <class T> static std::vector<T> elements(const fanout::Tensor<T, 1>& array);
// }; FANOUT_TEST_COMMUNICATOR(MyRanks);
//
// With `static bool available(std::size_t ranks)` it is skipped where there cannot be so many. If the ranks are in
// several processes, `static std::size_t here(std::size_t ranks)` is the number of those that run() runs in this one,
// and `static void share(std::vector<T>& all)` sets the elements of all ranks, of which this process has set its own.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/memory/transfer.hpp>

#define FANOUT_TEST_COMMUNICATOR(...) TEST_CASE_TEMPLATE_INVOKE(communicator_conformance, __VA_ARGS__)

namespace fanout_test {

/// An array with these elements in any memory, and the elements of one.
template <class T>
fanout::Tensor<T, 1> array_in(const fanout::backend::Memory& memory, const std::vector<T>& elements) {
  auto array = fanout::Tensor<T, 1>::uninitialized(fanout::Extents<1>{elements.size()}, memory);
  fanout::backend::transfer(memory, array.data(), fanout::host_memory, elements.data(), elements.size() * sizeof(T));
  return array;
}
template <class T>
std::vector<T> elements_of(const fanout::Tensor<T, 1>& array) {
  std::vector<T> elements(array.size());
  fanout::backend::transfer(fanout::backend::Memory{}, elements.data(), array.space(), array.data(),
                            elements.size() * sizeof(T));
  return elements;
}

/// Sets what ranks in other processes have noted.
template <class Ranks, class T>
void share(std::vector<T>& all) {
  if constexpr (requires { Ranks::share(all); }) Ranks::share(all);
}

/// The number of ranks of this process.
template <class Ranks>
std::size_t ranks_here(std::size_t ranks) {
  if constexpr (requires { Ranks::here(ranks); }) {
    return Ranks::here(ranks);
  } else {
    return ranks;
  }
}

/// Runs `f(communicator, array)` on so many ranks, where `array` is what `make(rank)` returns at first, and returns
/// what all arrays hold at the end.
template <class Ranks, class Make, class F>
auto after(std::size_t ranks, const Make& make, const F& f) {
  std::vector<decltype(make(ranks))> all(ranks);
  Ranks::run(ranks, [&](typename Ranks::communicator& communicator) {
    const std::size_t rank = communicator.rank();
    auto array = Ranks::array(rank, make(rank));
    f(communicator, array);
    all[rank] = Ranks::elements(array);
  });
  share<Ranks>(all);
  return all;
}

}  // namespace fanout_test

TEST_CASE_TEMPLATE_DEFINE("a communicator does what its concept says", Ranks, communicator_conformance) {
  using C = typename Ranks::communicator;
  using fanout::backend::Reduction;
  using fanout_test::after;
  using Ints = std::vector<int>;
  using Doubles = std::vector<double>;
  static_assert(fanout::backend::Communicator<C>);
  if constexpr (requires { Ranks::available(4); }) {
    if (!Ranks::available(4)) return;
  }
  const auto own_rank = [](std::size_t rank) { return Ints{static_cast<int>(rank), 10 + static_cast<int>(rank)}; };

  SUBCASE("1. ranks are numbered") {
    std::vector<std::size_t> ranks(3), sizes(3);
    Ranks::run(3, [&](C& c) {
      ranks[c.rank()] = c.rank();
      sizes[c.rank()] = c.size();
    });
    fanout_test::share<Ranks>(ranks);
    fanout_test::share<Ranks>(sizes);
    CHECK(ranks == std::vector<std::size_t>{0, 1, 2});
    CHECK(sizes == std::vector<std::size_t>{3, 3, 3});
  }

  SUBCASE("3. broadcast, reduce, all_reduce") {
    const auto sent = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.broadcast(x.view(), 1); });
    CHECK(sent == std::vector<Ints>{{1, 11}, {1, 11}, {1, 11}});
    const auto reduced = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.reduce(x.view(), 2, Reduction::sum); });
    CHECK(reduced == std::vector<Ints>{{0, 10}, {1, 11}, {3, 33}});
    const auto sums = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::sum); });
    CHECK(sums == std::vector<Ints>(3, Ints{3, 33}));
    const auto products = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::prod); });
    CHECK(products == std::vector<Ints>(3, Ints{0, 1320}));
    const auto least = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::min); });
    CHECK(least == std::vector<Ints>(3, Ints{0, 10}));
    const auto greatest = after<Ranks>(3, own_rank, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::max); });
    CHECK(greatest == std::vector<Ints>(3, Ints{2, 12}));
    const auto halves = [](std::size_t rank) { return Doubles{static_cast<double>(rank), -1.5}; };
    const auto means = after<Ranks>(4, halves, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::mean); });
    CHECK(means == std::vector<Doubles>(4, Doubles{1.5, -1.5}));
  }

  SUBCASE("3. arrays of many elements, and of none") {
    const auto many = [](std::size_t rank) {
      Doubles x(10007);
      std::iota(x.begin(), x.end(), static_cast<double>(rank));
      return x;
    };
    Doubles sum(10007);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = 3 * static_cast<double>(i) + 3;
    CHECK(after<Ranks>(3, many, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::sum); }) ==
          std::vector<Doubles>(3, sum));
    const auto reduced = after<Ranks>(3, many, [](C& c, auto& x) { c.reduce(x.view(), 0, Reduction::sum); });
    CHECK(reduced == std::vector<Doubles>{sum, many(1), many(2)});
    const auto none = [](std::size_t) { return Doubles{}; };
    CHECK(after<Ranks>(3, none, [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::sum); }).size() == 3);
  }

  SUBCASE("4. all_gather and reduce_scatter, also in place") {
    const auto three = [](std::size_t rank) { return Ints(6, static_cast<int>(rank)); };
    const auto gathered = after<Ranks>(3, three, [](C& c, auto& to) {
      auto from = Ranks::array(c.rank(), Ints{static_cast<int>(c.rank()), -1});
      c.all_gather(from.view(), to.view());
    });
    CHECK(gathered == std::vector<Ints>(3, Ints{0, -1, 1, -1, 2, -1}));
    const auto part = [](C& c) { return fanout::RowRange{2 * c.rank(), 2 * c.rank() + 2}; };
    const auto in_place = after<Ranks>(3, three, [&](C& c, auto& to) { c.all_gather(to.rows(part(c)), to.view()); });
    CHECK(in_place == std::vector<Ints>(3, Ints{0, 0, 1, 1, 2, 2}));
    const auto two = [](std::size_t) { return Ints(2); };
    const auto scattered = after<Ranks>(3, two, [](C& c, auto& to) {
      const int r = static_cast<int>(c.rank());
      auto from = Ranks::array(c.rank(), Ints{r, 1, 10 * r, 2, 100 * r, 3});
      c.reduce_scatter(from.view(), to.view(), Reduction::sum);
    });
    CHECK(scattered == std::vector<Ints>{{3, 3}, {30, 6}, {300, 9}});
    const auto scattered_in_place =
        after<Ranks>(3, three, [&](C& c, auto& x) { c.reduce_scatter(x.view(), x.rows(part(c)), Reduction::max); });
    CHECK(scattered_in_place == std::vector<Ints>{{2, 2, 0, 0, 0, 0}, {1, 1, 2, 2, 1, 1}, {2, 2, 2, 2, 2, 2}});
  }

  SUBCASE("3. 4. 5. arrays of any size come and are reduced whole") {
    const auto value = [](std::size_t rank, std::size_t i) { return static_cast<double>(100000 * rank + i); };
    const auto sum = [&](std::size_t i) { return value(0, i) + value(1, i) + value(2, i); };
    // Those of a block in which a communicator may work, and of some and a rest.
    for (const std::size_t each : {512U, 1700U}) {
      CAPTURE(each);
      std::vector<std::string> wrong(3);
      Ranks::run(3, [&](C& c) {
        const std::size_t own = c.rank();
        const auto array = [&](std::size_t size) {
          Doubles x(size);
          for (std::size_t i = 0; i < size; ++i) x[i] = value(own, i);
          return Ranks::array(own, x);
        };
        // Notes the call if the elements are others than `expected(i)`.
        const auto look = [&](const char* call, const auto& there, const auto& expected) {
          const Doubles found = Ranks::elements(there);
          for (std::size_t i = 0; i < found.size(); ++i) {
            if (found[i] != expected(i)) return void(wrong[own] += std::string(call) + ";");
          }
        };
        const fanout::RowRange part{each * own, each * (own + 1)};

        auto in_place = array(3 * each);
        c.reduce_scatter(in_place.view(), in_place.rows(part));
        look("reduce_scatter in place", in_place,
             [&](std::size_t i) { return i / each == own ? sum(i) : value(own, i); });
        const auto from = array(3 * each);
        auto apart = array(each);
        c.reduce_scatter(from.view(), apart.view(), Reduction::max);
        look("reduce_scatter", apart, [&](std::size_t i) { return value(2, own * each + i); });
        auto gathered = array(3 * each);
        c.all_gather(gathered.rows(part), gathered.view());
        look("all_gather", gathered, [&](std::size_t i) { return value(i / each, i); });
        auto least = array(each);
        c.all_reduce(least.view(), Reduction::min);
        look("all_reduce", least, [&](std::size_t i) { return value(0, i); });
        auto sums = array(each);
        c.reduce(sums.view(), 2);
        look("reduce", sums, [&](std::size_t i) { return own == 2 ? sum(i) : value(own, i); });
        auto sent = array(each);
        c.broadcast(sent.view(), 2);
        look("broadcast", sent, [&](std::size_t i) { return value(2, i); });
        auto passed = array(each);
        if (own == 1) c.send(passed.view(), 0);
        if (own == 0) c.recv(passed.view(), 1);
        look("send and recv", passed, [&](std::size_t i) { return value(own == 0 ? 1 : own, i); });
      });
      for (const std::string& calls : wrong) CHECK(calls == "");
    }
  }

  SUBCASE("5. send and recv are between two, in order") {
    const auto got = after<Ranks>(3, own_rank, [](C& c, auto& x) {
      auto other = Ranks::array(c.rank(), Ints{7, 8});
      if (c.rank() == 0) {
        c.send(x.view(), 2);
        c.send(other.view(), 2);
      } else if (c.rank() == 2) {
        c.recv(x.view(), 0);
        c.recv(other.view(), 0);
        c.send(other.view(), 1);
      } else {
        c.recv(x.view(), 2);
      }
    });
    CHECK(got == std::vector<Ints>{{0, 10}, {7, 8}, {0, 10}});
  }

  SUBCASE("6. a barrier waits for all") {
    std::atomic<int> came{0};
    const int here = static_cast<int>(fanout_test::ranks_here<Ranks>(4));
    std::atomic<bool> early{false};
    Ranks::run(4, [&](C& c) {
      for (int i = 1; i <= 20; ++i) {
        ++came;
        c.barrier();
        if (came < here * i) early = true;
        c.barrier();
      }
    });
    CHECK_FALSE(early);
  }

  SUBCASE("7. a group's calls start together, in any order") {
    const auto passed = after<Ranks>(4, own_rank, [](C& c, auto& x) {
      auto to = Ranks::array(c.rank(), Ints{0, 0});
      {
        const auto group = c.group();
        c.send(x.view(), (c.rank() + 1) % 4);
        const auto inner = c.group();
        c.recv(to.view(), (c.rank() + 3) % 4);
      }
      x = to;
    });
    CHECK(passed == std::vector<Ints>{{3, 13}, {0, 10}, {1, 11}, {2, 12}});
    const auto both = after<Ranks>(2, own_rank, [](C& c, auto& x) {
      auto y = Ranks::array(c.rank(), Ints{5});
      auto group = c.group();
      c.all_reduce(x.view(), Reduction::sum);
      c.broadcast(y.view(), 1);
      group.end();
      c.all_reduce(x.view(), Reduction::sum);
    });
    CHECK(both == std::vector<Ints>(2, Ints{2, 42}));
  }

  SUBCASE("7. a group that an exception ends makes no call") {
    const auto kept = after<Ranks>(2, own_rank, [](C& c, auto& x) {
      try {
        const auto group = c.group();
        c.all_reduce(x.view(), Reduction::sum);
        throw std::runtime_error("");
      } catch (const std::runtime_error&) {
      }
      c.barrier();
    });
    CHECK(kept == std::vector<Ints>{{0, 10}, {1, 11}});
  }

  SUBCASE("8. sums are the same in every run") {
    const auto odd = [](std::size_t rank) {
      Doubles x(2000);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0 / static_cast<double>(1 + rank * 7 + i);
      return x;
    };
    const auto sum = [](C& c, auto& x) { c.all_reduce(x.view(), Reduction::sum); };
    const auto first = after<Ranks>(3, odd, sum);
    for (int i = 0; i < 5; ++i) CHECK(after<Ranks>(3, odd, sum) == first);
    CHECK(first[0] == first[2]);
  }
}
