// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Calls in which ranks drawn at random fail, at steps drawn at random. All ranks draw the same numbers, so each rank
// knows what each rank must throw. A call's outcome is a text, which is compared with the expected one.

namespace {

using fanout::RowRange;
using fanout::Tensor;
using fanout::View;
using fanout::mpi::Ranks;

constexpr std::uint64_t seed = 5;

/// The same numbers on all ranks.
class Draws {
 public:
  std::size_t below(std::size_t n) { return words_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 words_{seed};
};

/// What one rank passes to a call.
struct Share {
  std::size_t rows = 0;
  std::set<std::size_t> bad_rows;  ///< `forward` throws
  bool rows_agree = true;          ///< otherwise the rank fails before its shards run
  bool clashes_inside = false;     ///< the values of its shards cannot be combined
  bool clashes_outside = false;    ///< nor its value with that of another such rank
  std::size_t extent = 3;          ///< of a value, which must be the same on all ranks
};
using Shares = std::vector<Share>;

std::size_t rows_of(const Shares& shares) {
  std::size_t rows = 0;
  for (const Share& share : shares) rows += share.rows;
  return rows;
}

Shares without_faults(const Shares& shares) {
  Shares good;
  for (const Share& share : shares) good.push_back({.rows = share.rows, .bad_rows = {}});
  return good;
}

/// No fault, or faults at one step or several.
Shares drawn(Draws& draws, std::size_t ranks) {
  const bool before = draws.one_in(5), inside = draws.one_in(2), after = draws.one_in(4), extents = draws.one_in(6),
             outside = draws.one_in(6);
  Shares shares(ranks);
  for (Share& share : shares) {
    share.rows = draws.below(8);
    const std::size_t bad = inside && share.rows != 0 && draws.one_in(2) ? draws.below(3) : 0;
    for (std::size_t i = 0; i < bad; ++i) share.bad_rows.insert(draws.below(share.rows));
    share.rows_agree = !(before && draws.one_in(3));
    share.clashes_inside = after && draws.one_in(3);
    share.clashes_outside = outside && draws.one_in(2);
    if (extents && draws.one_in(4)) share.extent = 4;
  }
  return shares;
}

struct Mark {
  std::size_t rank = 0;
  bool inside = false;
  bool outside = false;
};

/// Throws if the marks clash.
struct Join {
  Mark operator()(const Mark& a, const Mark& b) const {
    if (a.rank == b.rank ? a.inside && b.inside : a.outside && b.outside) throw std::domain_error("clash");
    return a;
  }
};

/// Throws for a bad row: one of three types.
void check_row(bool is_bad, std::size_t row) {
  if (!is_bad) return;
  const std::string text = "bad row " + std::to_string(row);
  if (row % 3 == 0) throw std::range_error(text);
  if (row % 3 == 1) throw fanout::InvalidArgument(text);
  throw row;
}

struct Sums {
  auto forward(fanout::Context auto& ctx, View<const double, 1> x, View<const int, 1> is_bad, const Mark& mark,
               std::size_t extent) const {
    auto words = fanout::output<std::uint32_t>(ctx);
    double sum = 0;
    for (const auto [local, global] : ctx.rows().enumerate()) {
      check_row(is_bad(local) != 0, global);
      words(local) = ctx.random(local)();
      sum += x(local);
    }
    return std::tuple{words, fanout::psum(Tensor<double, 1>::full({extent}, sum)), fanout::reduce(mark, Join())};
  }
};

struct Counting {
  fanout::Sum<std::size_t> rows;

  auto forward(fanout::Context auto& ctx, View<const double, 1> x, View<const int, 1> is_bad, const Mark& mark,
               std::size_t extent) {
    rows.value += x.size();
    return Sums().forward(ctx, x, is_bad, mark, extent);
  }
};

/// This rank's arguments.
struct Arguments {
  Arguments(const Shares& shares, std::size_t rank)
      : mark{rank, shares[rank].clashes_inside, shares[rank].clashes_outside},
        first(rows_of({shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(rank)})),
        extent(shares[rank].extent),
        x(shares[rank].rows),
        is_bad(shares[rank].rows + (shares[rank].rows_agree ? 0 : 1)) {
    for (std::size_t i = 0; i < x.size(); ++i) x(i) = static_cast<double>(first + i);
    for (const std::size_t row : shares[rank].bad_rows) is_bad(row) = 1;
  }

  template <class Use>
  auto operator()(const Use& use) const {
    return use(x, is_bad, mark, extent);
  }

  Mark mark;
  std::size_t first;  // row
  std::size_t extent;
  Tensor<double, 1> x;
  Tensor<int, 1> is_bad;
};

/// ` 1 3` for ranks 1 and 3, if the text has a line for each of these and no other rank.
std::string named_in(const std::string& text) {
  const std::string begin = "\n  rank ";
  std::string ranks;
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    ranks += ' ' + text.substr(at, text.find(' ', at) - at);
  }
  return ranks;
}
std::string named(const std::vector<std::size_t>& ranks) {
  std::string text;
  for (const std::size_t rank : ranks) text += ' ' + std::to_string(rank);
  return text;
}

/// All ranks, in their order.
std::vector<std::size_t> up_to(std::size_t ranks) {
  std::vector<std::size_t> all(ranks);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// A shard that fails, as rank `own` sees it. Other ranks' numbers that are thrown have no text.
std::string text_of(std::size_t shard, const RowRange& rows, std::size_t rank, std::size_t bad, std::size_t own) {
  return "\nshard " + std::to_string(shard) + " with rows " + to_string(rows) + " of rank " + std::to_string(rank) +
         ": bad row " + (bad % 3 == 2 && rank != own ? "?" : std::to_string(bad));
}

std::string text_of(const fanout::Failure& failure) {
  std::string what;
  try {
    std::rethrow_exception(failure.exception);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (const std::size_t& row) {  // of this rank
    what = "bad row " + std::to_string(row);
  }
  if (what == "an exception that is no std::exception") what = "bad row ?";
  const std::string process = failure.process.empty() ? "rank 0 on " : failure.process;
  return "\nshard " + std::to_string(failure.shard) + " with rows " + to_string(failure.rows) + " of " +
         process.substr(0, process.find(" on ")) + ": " + what.substr(std::min(what.size(), what.find("bad row ")));
}

/// What became of the call.
template <class Call>
std::string outcome(const Call& call) {
  try {
    return call();
  } catch (const fanout::ReplicaError& error) {
    std::string text = "failed shards:";
    for (const fanout::Failure& failure : error.failures()) text += text_of(failure);
    return text;
  } catch (const std::domain_error& error) {
    return std::string("own: ") + error.what();
  } catch (const fanout::ShapeMismatch&) {
    return "own: shapes";
  } catch (const fanout::InvalidArgument&) {
    return "own: argument";
  } catch (const fanout::StructureMismatch& error) {
    return "calls differ:" + named_in(error.what());
  } catch (const fanout::Error& error) {
    return "others failed:" + named_in(error.what());
  }
}

/// The ranks that fail at each step of a call, as rank `own` sees them.
struct Faults {
  std::vector<std::size_t> before;  ///< before their shards run
  std::string shards;               ///< whose `forward` throws
  std::vector<std::size_t> inside;  ///< when they combine the values of their shards
  bool extents_differ = false;
  bool outside = false;  ///< one rank fails when it combines the values of all ranks
};

template <class Model>
Faults faults_of(const Model& model, const Shares& shares, std::size_t own) {
  Faults faults;
  const Share* first = nullptr;  // whose value counts
  std::size_t row = 0, shard = 0;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const Share& share = shares[rank];
    const auto plan = model.plan(share.rows);
    bool is_failing = false;
    for (std::size_t i = 0; i < plan.size(); ++i, ++shard) {
      const RowRange rows = plan[i].rows;
      const auto bad = share.bad_rows.lower_bound(rows.first);
      if (bad == share.bad_rows.end() || *bad >= rows.last) continue;
      is_failing = true;
      faults.shards += text_of(shard, {row + rows.first, row + rows.last}, rank, row + *bad, own);
    }
    row += share.rows;
    if (!share.rows_agree) faults.before.push_back(rank);
    faults.extents_differ = faults.extents_differ || share.extent != shares[0].extent;
    if (share.rows == 0 && rows_of(shares) != 0) continue;  // its values do not count
    if (share.clashes_inside && plan.size() > 1 && !is_failing) faults.inside.push_back(rank);
    if (first == nullptr) first = &share;
    faults.outside = faults.outside || (&share != first && share.clashes_outside && first->clashes_outside);
  }
  return faults;
}

// Each rank combines few values itself. Many are combined in slices, each by one rank.
constexpr const char* one_clash = "own: clash on all ranks, or on one, which the others name";

struct Expected {
  std::string outcome;      ///< of this rank, empty if the call does not fail
  bool is_returned = true;  ///< `forward`, by all shards of all ranks
};

/// `fields`: the model has combined fields, which have a step of their own, before shards' values are combined.
Expected expected(const Faults& faults, bool fields, std::size_t own, std::size_t ranks) {
  const auto of = [own](const std::vector<std::size_t>& failing, const char* if_own) {
    const bool has_own = std::find(failing.begin(), failing.end(), own) != failing.end();
    return has_own ? if_own : "others failed:" + named(failing);
  };
  const std::string inside = of(faults.inside, "own: clash");
  if (!faults.before.empty()) return {of(faults.before, "own: shapes"), false};
  if (!faults.shards.empty()) {
    const bool has_own = inside == "own: clash" && !fields;
    return {has_own ? inside : "failed shards:" + faults.shards, false};
  }
  if (!faults.inside.empty()) return {inside};
  if (faults.extents_differ) return {"calls differ:" + named(up_to(ranks))};
  return {faults.outside ? one_clash : ""};
}

/// The outcome on all ranks together, if values of several ranks clashed.
std::string together(const std::string& seen, const Ranks& ranks) {
  int own[] = {seen == "own: clash" ? 1 : 0, seen == "own: clash" ? static_cast<int>(ranks.rank()) : 0};
  MPI_Allreduce(MPI_IN_PLACE, own, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (own[0] == static_cast<int>(ranks.size())) return one_clash;
  if (own[0] != 1) return seen;
  const auto rank = static_cast<std::size_t>(own[1]);
  return ranks.rank() == rank || seen == "others failed:" + named({rank}) ? one_clash : seen;
}

/// Checks the result of the model's call of this number.
template <class Result>
std::string checked(const Result& result, const Shares& shares, const Arguments& mine, std::uint32_t call) {
  const auto& [words, sums, mark] = result;
  const std::size_t rows = rows_of(shares);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words(i) != fanout::RandomStream(seed, call, mine.first + i)()) return "other random numbers";
  }
  if (words.size() != mine.x.size()) return "other rows";
  const double sum = static_cast<double>(rows) * (static_cast<double>(rows) - 1) / 2;
  return sums == Tensor<double, 1>::full({mine.extent}, rows == 0 ? 0 : sum) ? "" : "another sum";
}

/// A model, the number of its next call, and the rows of the calls in which `forward` did not throw.
template <class Model>
struct Tried {
  explicit Tried(const Ranks& all, int devices)
      : ranks(all), model{Model{}, fanout::host_devices(devices), {.seed = seed, .ranks = all}} {}

  /// Makes a call. Returns true if it threw.
  bool call(const Shares& shares) {
    const Arguments mine(shares, ranks.rank());
    return end(shares, mine, [&] { return mine([&](const auto&... arguments) { return model(arguments...); }); });
  }

  /// Makes an asynchronous call, and one without faults before its result is taken.
  bool call_async(const Shares& shares) {
    const Shares good = without_faults(shares);
    const Arguments mine(shares, ranks.rank()), next(good, ranks.rank());
    const auto start = [&](const auto&... arguments) { return model.async(arguments...); };
    auto first = mine(start);
    auto second = next(start);
    const bool threw = end(shares, mine, [&] { return first.get(); });
    CHECK_FALSE(end(good, next, [&] { return second.get(); }));
    return threw;
  }

  template <class Result>
  bool end(const Shares& shares, const Arguments& mine, const Result& result) {
    constexpr bool fields = std::is_same_v<Model, Counting>;
    const Expected wanted = expected(faults_of(model, shares, ranks.rank()), fields, ranks.rank(), ranks.size());
    std::string seen = outcome([&] { return checked(result(), shares, mine, calls); });
    if (wanted.outcome == one_clash) seen = together(seen, ranks);
    CHECK(seen == wanted.outcome);
    if (wanted.is_returned) rows += rows_of(shares);  // fields are combined before the result
    if (shares[0].rows_agree) ++calls;                // rank 0 numbers them
    return !wanted.outcome.empty();
  }

  const Ranks& ranks;
  fanout::ParallelModel<Model, fanout::DeviceSet<fanout::HostDevice>> model;
  std::uint32_t calls = 0;
  std::size_t rows = 0;
};

/// `gather` or `scatter` with arrays that do not fit, or roots that are none or differ. Returns true if it threw.
bool move_rows(Draws& draws, const Ranks& ranks) {
  const std::size_t kind = draws.below(4), root = draws.below(ranks.size());
  std::vector<std::size_t> chosen;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (draws.one_in(3)) chosen.push_back(rank);
  }
  const bool is_chosen = std::find(chosen.begin(), chosen.end(), ranks.rank()) != chosen.end();
  const bool is_root = ranks.rank() == root;
  const bool differ = !chosen.empty() && chosen.size() != ranks.size();
  std::string wanted;
  const auto gather = [&](std::size_t columns, std::size_t at) {
    return outcome([&] {
      const auto whole = ranks.gather(Tensor<double, 2>::full({ranks.rank(), columns}, 1.5), at);
      if (whole.has_value() != (ranks.rank() == at)) return "another root";
      const std::size_t rows = ranks.size() * (ranks.size() - 1) / 2;
      return !whole || *whole == Tensor<double, 2>::full({rows, columns}, 1.5) ? "" : "other rows";
    });
  };
  if (kind == 0) {
    if (differ) wanted = is_root ? "own: shapes" : "others failed:" + named({root});
    CHECK(gather(is_chosen ? 2 : 3, root) == wanted);
  } else if (kind == 1) {
    if (!chosen.empty()) wanted = is_chosen ? "own: argument" : "others failed:" + named(chosen);
    CHECK(gather(3, is_chosen ? ranks.size() : root) == wanted);
  } else if (kind == 2) {
    if (differ) wanted = "calls differ:" + named(up_to(ranks.size()));
    CHECK(gather(3, is_chosen ? (root + 1) % ranks.size() : root) == wanted);
  } else {
    if (!chosen.empty()) wanted = is_root ? "own: shapes" : "others failed:" + named({root});
    const std::size_t rows = is_root ? 2 * ranks.size() : 0;
    const std::tuple batch(Tensor<int, 1>(rows), Tensor<int, 1>(rows + (is_root && !chosen.empty() ? 1 : 0)));
    CHECK(outcome([&] { return std::get<0>(ranks.scatter(batch, root)).size() == 2 ? "" : "other rows"; }) == wanted);
  }
  CHECK(gather(3, root).empty());
  return !wanted.empty();
}

}  // namespace

TEST_CASE("ranks that fail at random are named on all ranks, and the model works afterwards") {
  const char* const setting = std::getenv("FANOUT_TEST_THROWS");
  const std::size_t wanted = setting == nullptr ? 50 : std::stoul(setting);
  const Ranks ranks{MPI_COMM_WORLD};
  Tried<Sums> sums(ranks, 2);
  Tried<Counting> counting(ranks, 3);
  Draws draws;
  std::size_t rounds = 0, throws = 0;
  for (; throws < wanted; ++rounds) {
    CAPTURE(rounds);
    const std::size_t way = draws.below(4);
    if (way == 0) {
      throws += move_rows(draws, ranks) ? 1 : 0;
      continue;
    }
    const Shares shares = drawn(draws, ranks.size());
    const bool threw = way == 1 ? sums.call(shares) : way == 2 ? sums.call_async(shares) : counting.call(shares);
    throws += threw ? 1 : 0;
    const Shares good = without_faults(shares);
    if (threw && way == 1) CHECK_FALSE(sums.call(good));
    if (threw && way == 3) CHECK_FALSE(counting.call(good));
    CHECK(counting.model.model().rows.value == counting.rows);
  }
  if (ranks.rank() == 0) MESSAGE(throws << " throws in " << rounds << " rounds");
}
