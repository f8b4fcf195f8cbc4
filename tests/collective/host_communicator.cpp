// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/collective/host_communicator.hpp>
#include <fanout/tree/dict.hpp>

#include "collective/communicator_conformance.hpp"
#include "support/host_ranks.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::CommunicatorAbandoned;
using fanout::ShapeMismatch;
using fanout::StructureMismatch;
using fanout::Tensor;
using fanout::backend::HostCommunicator;
using fanout::backend::HostRendezvous;
using fanout::backend::Reduction;
using fanout_test::message_of;
using fanout_test::says;

namespace {

struct HostRanks {
  using communicator = HostCommunicator;
  template <class F>
  static void run(std::size_t ranks, const F& f) {
    fanout_test::run_ranks<HostCommunicator>(ranks, f);
  }
  template <class T>
  static Tensor<T, 1> array(std::size_t, const std::vector<T>& elements) {
    return Tensor<T, 1>(fanout::View<const T, 1>(elements.data(), elements.size()));
  }
  template <class T>
  static std::vector<T> elements(const Tensor<T, 1>& array) {
    return {array.begin(), array.end()};
  }
};

template <class E, class F>
std::vector<std::string> texts_of(std::size_t ranks, const F& f) {
  return fanout_test::texts_of<E, HostCommunicator>(ranks, f);
}

struct Layer {
  Tensor<float, 2> weight;
  std::vector<double> bias;
};
struct Gradients {
  std::map<std::string, Layer> layers;
  std::optional<Tensor<float, 1>> extra;
  int steps;
};

Gradients gradients(float value) {
  Layer layer{Tensor<float, 2>(2, 3), {value, 1}};
  for (float& x : layer.weight) x = value;
  return {{{"first", layer}, {"second", layer}}, std::nullopt, 1};
}

}  // namespace

#if defined(__FLT16_MAX__) && defined(__x86_64__)  // g++ 12 takes it in C++ for x86 alone
__extension__ using HalfFloat = _Float16;
template <>
inline constexpr bool fanout::enable_scalar<HalfFloat> = true;
#endif

FANOUT_TEST_COMMUNICATOR(HostRanks);

TEST_CASE("a tree is reduced leaf by leaf in one call") {
  std::vector<Gradients> all(3);
  HostRanks::run(3, [&](HostCommunicator& ranks) {
    Gradients own = gradients(static_cast<float>(ranks.rank()));
    ranks.all_reduce(own);
    all[ranks.rank()] = std::move(own);
  });
  for (const Gradients& one : all) {
    CHECK(one.layers.at("first").weight(1, 2) == 3);
    CHECK(one.layers.at("second").bias == std::vector<double>{3, 3});
    CHECK(one.steps == 3);
  }
}

TEST_CASE("an optional and a variant are passed as the value that they hold") {
  std::vector<double> sums(2);
  HostRanks::run(2, [&](HostCommunicator& ranks) {
    std::tuple<std::optional<double>, std::optional<double>, std::variant<int, double>> tree(1.0, std::nullopt, 2.0);
    ranks.all_reduce(tree);
    CHECK_FALSE(std::get<1>(tree).has_value());
    sums[ranks.rank()] = *std::get<0>(tree) + 10 * std::get<1>(std::get<2>(tree));
  });
  CHECK(sums == std::vector{42.0, 42.0});
}

TEST_CASE("trees without arrays are passed, too") {
  std::atomic<int> passed{0};
  HostRanks::run(2, [&](HostCommunicator& ranks) {
    std::vector<Tensor<float, 1>> none;
    ranks.all_reduce(none, Reduction::mean);
    ranks.broadcast(std::tuple<>(), 1);
    ranks.rank() == 0 ? ranks.send(none, 1) : ranks.recv(none, 0);
    ++passed;
  });
  CHECK(passed == 2);
}

TEST_CASE("tuples, dicts, arrays, spans and numbers are trees too") {
  std::vector<double> all(2);
  HostRanks::run(2, [&](HostCommunicator& ranks) {
    const double own = static_cast<double>(ranks.rank());
    std::vector<int> shown{1, 2};
    auto tree = std::tuple{own, fanout::dict("a"_k = std::array{own, 2.0}, "b"_k = std::span<int>(shown))};
    ranks.broadcast(tree, 1);
    all[ranks.rank()] = std::get<0>(tree) + std::get<1>(tree)["a"_k][0];
    std::vector<std::complex<float>> sums(1, {1, 2});
    ranks.all_reduce(sums, Reduction::mean);
    CHECK(sums[0] == std::complex<float>(1, 2));
    std::vector<double> each(2);
    ranks.all_gather(own, each);
    CHECK(each == std::vector<double>{0, 1});
  });
  CHECK(all == std::vector<double>{2, 2});
}

TEST_CASE("a NaN is not lost in a minimum") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  std::atomic<int> kept{0};
  HostRanks::run(3, [&](HostCommunicator& ranks) {
    float least = ranks.rank() == 1 ? nan : 1;
    float greatest = ranks.rank() == 0 ? nan : 1;
    ranks.all_reduce(least, Reduction::min);
    ranks.all_reduce(greatest, Reduction::max);
    if (std::isnan(least) && std::isnan(greatest)) ++kept;
  });
  CHECK(kept == 3);
}

TEST_CASE("different collectives are named on every rank") {
  const auto texts = texts_of<StructureMismatch>(2, [](HostCommunicator& ranks) {
    std::vector<float> x(3);
    if (ranks.rank() == 0) {
      ranks.all_reduce(x);
    } else {
      ranks.barrier();
    }
  });
  for (const std::string& text : texts) {
    CHECK(says(text,
               "rank 0 called all_reduce(sum) of float[3], rank 1 called barrier; call the same ones on all ranks"));
  }
}

TEST_CASE("other types, roots, reductions and trees do not fit, nor do other extents") {
  const auto called = []<class E>(const E*, const auto& f, const auto&... words) {
    for (const std::string& text : texts_of<E>(2, f)) CHECK(says(text, words...));
  };
  const StructureMismatch* structure = nullptr;
  const ShapeMismatch* shape = nullptr;
  called(
      structure,
      [](HostCommunicator& c) {
        std::vector<int> x(2);
        std::vector<float> y(2);
        c.rank() == 0 ? c.all_reduce(x) : c.all_reduce(y);
      },
      "int[2]", "float[2]");
  called(
      structure,
      [](HostCommunicator& c) {
        int x = 0;
        c.broadcast(x, c.rank());
      },
      "from rank 0", "from rank 1");
  called(
      structure,
      [](HostCommunicator& c) {
        int x = 0;
        c.all_reduce(x, c.rank() == 0 ? Reduction::min : Reduction::max);
      },
      "all_reduce(min) of int", "all_reduce(max)");
  called(
      structure,
      [](HostCommunicator& c) {
        std::vector<Tensor<float, 1>> x(1 + c.rank());
        c.all_reduce(x);
      },
      "at tree[0]", "(of 2 arrays)");
  called(
      structure,
      [](HostCommunicator& c) {
        std::optional<float> first, second;
        (c.rank() == 0 ? second : first) = 1;
        c.all_reduce(first);
        c.all_reduce(second);
      },
      "rank 0 called all_reduce(sum) of no arrays, rank 1 called all_reduce(sum) of float;");
  called(
      shape,
      [](HostCommunicator& c) {
        Gradients own = gradients(0);
        if (c.rank() == 1) own.layers["second"].weight = Tensor<float, 2>(3, 2);
        c.all_reduce(own);
      },
      "float[2, 3] at tree.layers[\"second\"].weight", "float[3, 2]");
  for (const int other : {0, 1}) {
    called(
        shape,
        [other](HostCommunicator& c) {
          std::map<std::pair<int, int>, std::vector<int>> x{{{0, 0}, {1}}, {{0, 1}, {1}}};
          if (c.rank() == 1) x[{0, other}].push_back(1);
          c.all_reduce(x);
        },
        "int[1] at tree[(0, " + std::to_string(other) + ")]", "int[2] at tree[(0, " + std::to_string(other) + ")]");
  }
  called(
      shape,
      [](HostCommunicator& c) {
        std::vector<int> x(1 + c.rank());
        c.rank() == 0 ? c.send(x, 1) : c.recv(x, 0);
      },
      "rank 0 called send of int[1] to rank 1, rank 1 called recv of int[2] from rank 0; send and receive arrays of "
      "the same type and extents");
}

TEST_CASE("calls that would deadlock are refused and named") {
  const auto both_wait = texts_of<StructureMismatch>(2, [](HostCommunicator& ranks) {
    int x = 0;
    ranks.recv(x, 1 - ranks.rank());
  });
  for (const std::string& text : both_wait) {
    CHECK(says(text, "rank 0 called recv", "rank 1 called recv", "call both in a group()"));
  }
  const auto both_send = texts_of<StructureMismatch>(2, [](HostCommunicator& ranks) {
    int x = 0;
    ranks.send(x, 1 - ranks.rank());
    ranks.recv(x, 1 - ranks.rank());
  });
  for (const std::string& text : both_send) {
    CHECK(text ==
          "collectives that do not fit together: found rank 0 called send of int to rank 1, rank 1 called send "
          "of int to rank 0; send and recv wait for each other: ranks that exchange arrays call both in a "
          "group(), and each send needs a recv");
  }
  const auto mixed = texts_of<StructureMismatch>(3, [](HostCommunicator& ranks) {
    int x = 0;
    ranks.rank() == 1 ? ranks.send(x, 2) : ranks.barrier();
  });
  for (const std::string& text : mixed)
    CHECK(says(text, "rank 0 called barrier", "rank 1 called send", "rank 2 called", "each send needs a recv"));
}

TEST_CASE("the ranks may go on after an error that all of them got") {
  std::atomic<int> done{0};
  HostRanks::run(3, [&](HostCommunicator& ranks) {
    std::vector<int> x(2 + ranks.rank() % 2);
    try {
      ranks.all_reduce(x);
    } catch (const ShapeMismatch&) {
      std::vector<int> y(1, 1);
      ranks.all_reduce(y);
      done += y[0];
    }
  });
  CHECK(done == 9);
}

TEST_CASE("a rank that leaves releases those that wait for it") {
  const auto texts = texts_of<CommunicatorAbandoned>(3, [](HostCommunicator& ranks) {
    if (ranks.rank() == 1) return;
    ranks.barrier();
  });
  CHECK(texts[1].empty());
  CHECK(says(texts[0], "rank 0 called barrier", "rank 1 has left"));
  CHECK(says(texts[2], "rank 2 called barrier", "rank 1 has left"));
}

TEST_CASE("a moved communicator leaves the rendezvous when its new owner is destroyed") {
  HostRendezvous rendezvous(2);
  std::optional<HostCommunicator> first;
  {
    HostCommunicator moved(rendezvous, 0);
    first.emplace(std::move(moved));
  }
  CHECK(first->rank() == 0);
  CHECK(first->size() == 2);
  int others = 0;
  std::string told;
  std::thread other([&] {
    HostCommunicator second(rendezvous, 1);
    int own = 2;
    second.all_reduce(own);
    others = own;
    told = message_of<CommunicatorAbandoned>([&] { second.barrier(); });
  });
  int own = 1;
  first->all_reduce(own);
  first.reset();
  other.join();
  CHECK(own == 3);
  CHECK(others == 3);
  CHECK(says(told, "rank 0 has left"));
}

TEST_CASE("a released rank's error names the rank that failed first") {
  std::atomic<std::size_t> culprits{0};
  HostRanks::run(3, [&](HostCommunicator& ranks) {
    try {
      int x = 0;
      if (ranks.rank() == 2) throw std::runtime_error("boom");
      ranks.rank() == 1 ? ranks.barrier() : ranks.recv(x, 1);
    } catch (const CommunicatorAbandoned& abandoned) {
      culprits += 10 + abandoned.rank();
      throw;
    }
  });
  CHECK(culprits == 24);
}

TEST_CASE("if some ranks left and one threw, the others' error names the one that threw") {
  // On one thread, so that all have gone before the last one waits for them.
  std::array<std::size_t, 4> order{0, 1, 2, 3};  // who throws, who leaves, who leaves released, and who waits
  do {
    for (const bool throws_first : {true, false}) {
      const auto [thrower, leaver, released, waiter] = order;
      CAPTURE(std::to_string(thrower) + " threw, " + std::to_string(leaver) + " left");
      CAPTURE(throws_first);
      HostRendezvous rendezvous(4);
      const auto leave = [&, leaver = leaver] { const HostCommunicator ranks(rendezvous, leaver); };
      if (!throws_first) leave();
      rendezvous.leave(thrower, std::make_exception_ptr(std::runtime_error("boom")));
      if (throws_first) leave();
      try {
        HostCommunicator ranks(rendezvous, released);
        int x = 0;
        ranks.recv(x, thrower);
      } catch (const CommunicatorAbandoned& abandoned) {
        CHECK(abandoned.rank() == thrower);
      }
      HostCommunicator ranks(rendezvous, waiter);
      std::size_t told = 4;
      const std::string text = message_of<CommunicatorAbandoned>([&] {
        try {
          ranks.barrier();
        } catch (const CommunicatorAbandoned& abandoned) {
          told = abandoned.rank();
          throw;
        }
      });
      CHECK(told == thrower);
      CHECK(says(text, "rank " + std::to_string(waiter) + " called barrier",
                 "rank " + std::to_string(thrower) + " threw: boom"));
      // Whoever needs one of them alone is told of that one.
      int x = 0;
      CHECK(says(message_of<CommunicatorAbandoned>([&, leaver = leaver] { ranks.recv(x, leaver); }),
                 "rank " + std::to_string(leaver) + " has left"));
      CHECK(says(message_of<CommunicatorAbandoned>([&, released = released] { ranks.send(x, released); }),
                 "rank " + std::to_string(thrower) + " threw: boom"));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("send and recv do not need a rank that has left") {
  std::atomic<int> got{0};
  HostRanks::run(3, [&](HostCommunicator& ranks) {
    if (ranks.rank() == 2) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    int x = ranks.rank() == 0 ? 7 : 0;
    ranks.rank() == 0 ? ranks.send(x, 1) : ranks.recv(x, 0);
    if (ranks.rank() == 1) got = x;
  });
  CHECK(got == 7);
}

TEST_CASE("invalid arguments are refused at once") {
  HostRendezvous rendezvous(1);
  HostCommunicator ranks(rendezvous, 0);
  std::vector<int> x(2);
  std::vector<int> y(3);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { ranks.broadcast(x, 1); }), "no such rank", "below 1"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { ranks.all_reduce(x, Reduction::mean); }), "no such reduction",
             "all_reduce(mean) of int[2]"));
  std::vector<std::complex<double>> z(1);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { ranks.all_reduce(z, Reduction::max); }),
             "ordered ones for min and max"));
  CHECK(says(message_of<ShapeMismatch>([&] { ranks.all_gather(x, y); }), "all_gather of int[2]", "expected 2",
             "found 3"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { HostCommunicator(rendezvous, 1); }), "below 1", "found 1"));
  const fanout::View<int, 1> elsewhere(x.data(), {2}, {{.kind = "toy", .index = 0}});
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { ranks.all_reduce(elsewhere); }), "host memory", "toy:0"));
  ranks.all_reduce(x);
  ranks.barrier();
}

TEST_CASE("sums and means are rounded once, and whole numbers wrap") {
  std::atomic<int> right{0};
  std::atomic<int> halves{0};
  HostRanks::run(3, [&](HostCommunicator& ranks) {
#if defined(__FLT16_MAX__) && defined(__x86_64__)
    std::vector<HalfFloat> means(600, HalfFloat(60000));  // a sum of which would be infinite
    ranks.all_reduce(means, Reduction::mean);
    std::vector<HalfFloat> sums(600, HalfFloat(ranks.rank() == 0 ? 2048 : 1));  // each 1 alone would be lost
    ranks.all_reduce(sums);
    if (means[599] == HalfFloat(60000) && sums[599] == HalfFloat(2050)) ++halves;
#endif
    std::vector<int> wrapped(600, std::numeric_limits<int>::max());
    ranks.all_reduce(wrapped);
    std::uint16_t product = 0xffff;
    ranks.all_reduce(product, Reduction::prod);
    if (wrapped[599] == std::numeric_limits<int>::max() - 2 && product == 0xffff) ++right;
  });
  CHECK(right == 3);
#if defined(__FLT16_MAX__) && defined(__x86_64__)
  CHECK(halves == 3);
#endif

  std::atomic<int> exact{0};
  constexpr std::size_t many = 24;
  HostRanks::run(many, [&](HostCommunicator& ranks) {
    std::vector<float> sums(600, ranks.rank() == 0 ? 0x1p24F : 1);
    ranks.all_reduce(sums);
    std::complex<float> mean(0.1F, 3);
    ranks.all_reduce(mean, Reduction::mean);
    if (sums[0] == 0x1p24F + 24 && sums[599] == sums[0] && mean == std::complex<float>(0.1F, 3)) ++exact;
  });
  CHECK(exact == many);
}
