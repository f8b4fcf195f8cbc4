// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each allocation of one rank fails in each kind of call over ranks: alone, with the next one, and with all that follow
// in the call. The rank throws, and the others do not wait for it: they throw too, or have the right result. The next
// call is right on all ranks.
//
// `allocations [--alone] [KIND]...` runs these kinds. It is started on several ranks, with
// FANOUT_TEST_THREAD_LEVEL=funneled on one device each, without asynchronous calls. It fails if a call hangs. --alone:
// each allocation fails alone.

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#include <fanout/mpi.hpp>
#include <fanout/observe.hpp>

#include "random_programs/failing_new.hpp"

namespace {

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::mpi::Ranks;
using fanout::mpi::RanksOptions;
using random_programs::fail_allocation;
using random_programs::fail_allocations_from;
using random_programs::has_failed;
using random_programs::MayFail;
using random_programs::Spared;
using namespace std::chrono_literals;

using Call = std::function<void()>;

int devices = 2;                 // of each rank
constexpr std::size_t rows = 4;  // of each rank

/// Throws if a result is another one.
void expect(bool right, const char* what) {
  const Spared spared;
  if (!right) throw std::logic_error(what);
}

/// The rows of a rank: those of all ranks are 0, 1, 2, ...
Tensor<double, 1> numbers(const Ranks& ranks) {
  const Spared spared;
  Tensor<double, 1> x(rows);
  std::iota(x.begin(), x.end(), static_cast<double>(ranks.rank() * rows));
  return x;
}
double sum_of_all(const Ranks& ranks) {
  const auto all = static_cast<double>(ranks.size() * rows);
  return all * (all - 1) / 2;
}

double sum_of(View<const double, 1> x) { return std::accumulate(x.begin(), x.end(), 0.0); }

// ---- models -----------------------------------------------------------------------------------------

struct Rows {
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto made = fanout::output<double>(ctx);
    std::copy(x.begin(), x.end(), made.data());
    return made;
  }
};
struct Sum {
  auto forward(View<const double, 1> x) const { return fanout::psum(sum_of(x)); }
};
/// A type for each first call.
template <std::size_t n>
struct SumOf : Sum {};
struct Join {
  double operator()(double a, double b) const { return a + b; }  // may throw
};
struct Statistics {
  fanout::Sum<double> sum;
  fanout::Mean<Tensor<double, 1>> mean{Tensor<double, 1>(2)};
  fanout::Max<double> most;
};
struct Rules {
  std::size_t extent = 3;
  auto forward(View<const double, 1> x) const {
    Statistics statistics;
    statistics.sum = sum_of(x);
    statistics.most = x.size() == 0 ? 0 : x(x.size() - 1);
    return std::tuple{statistics, fanout::psum(Tensor<double, 1>::full({extent}, sum_of(x))),
                      fanout::pmean(std::map<std::string, double>{{"a mean under a long name", 2.0}}),
                      fanout::reduce(sum_of(x), Join()), std::vector<double>(x.begin(), x.end())};
  }
};
struct Fields {
  fanout::Sum<Tensor<double, 1>> sums{Tensor<double, 1>(30)};
  fanout::Mean<double> mean;
  auto forward(View<const double, 1> x) {
    sums.value(3) += sum_of(x);
    mean.value = 5;
    return fanout::psum(sum_of(x));
  }
};
struct Meets {
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto communicator = ctx.communicator();
    std::vector<double> sums(3, sum_of(x));
    communicator.all_reduce(sums);
    std::vector<double> large(3000, sum_of(x));
    communicator.all_reduce(large);
    const std::vector<std::size_t> own{ctx.rank()};
    std::vector<std::size_t> ranks(ctx.size());
    communicator.all_gather(own, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) expect(ranks[i] == i, "other ranks than there are");
    communicator.barrier();
    double passed = 1;
    if (ctx.rank() != 0) communicator.recv(passed, ctx.rank() - 1);
    passed += 1;
    if (ctx.rank() + 1 != ctx.size()) communicator.send(passed, ctx.rank() + 1);
    expect(passed == 2.0 + static_cast<double>(ctx.rank()), "another number than was passed on");
    expect(large[2999] == sums[0], "another sum");
    return fanout::psum(sums[0]);
  }
};
/// Goes on after an allocation has failed in a collective.
struct Swallows {
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    double sum = sum_of(x);
    bool failed = false;
    try {
      ctx.communicator().all_reduce(sum);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    return fanout::psum(failed ? 0.0 : sum);
  }
};
struct Buckets {
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    std::vector<double> first(700, sum_of(x));
    std::vector<double> second(900, sum_of(x));
    auto communicator = ctx.communicator();
    auto buckets = communicator.buckets({.first = 1000, .others = 1000});
    buckets.all_reduce_async(first);
    buckets.all_reduce_async(second);
    buckets.wait();
    expect(first[699] == second[899], "other sums");
    return fanout::psum(first[0]);
  }
};
struct Fails {
  auto forward(View<const double, 1> x) const {
    if (x.size() != 0) throw std::runtime_error(std::string(40, 'e'));
    return fanout::psum(0.0);
  }
};
struct Weights {
  Tensor<double, 1> weights{Tensor<double, 1>(6)};
  std::vector<float> bias = std::vector<float>(7);
  auto forward(View<const double, 1> x) const { return fanout::psum(weights(0) * static_cast<double>(x.size())); }
};

// ---- kinds of calls ---------------------------------------------------------------------------------

/// A kind: makes a call.
struct Kind {
  const char* name;
  bool tells;  ///< all ranks throw, or none; the others tell of the rank
  std::function<Call(const Ranks&)> make;
};

template <class M>
auto model_of(const Ranks& ranks, const M& model, Options options = {}) {
  options.ranks = ranks;
  return std::make_shared<ParallelModel<M, fanout::DeviceSet<fanout::HostDevice>>>(M(model), host_devices(devices),
                                                                                   options);
}

/// Calls of one model, each of which gives `use` the result.
template <class M, class Use>
Call calls_of(const Ranks& ranks, const M& model, const Options& options, const Use& use) {
  const auto made = model_of(ranks, model, options);
  return [made, use, &ranks, x = numbers(ranks)] { use(*made, x, ranks); };
}

const auto gives_sum = [](const auto& model, const auto& x, const Ranks& ranks) {
  expect(model(x) == sum_of_all(ranks), "another sum");
};
const auto gives_sum_later = [](const auto& model, const auto& x, const Ranks& ranks) {
  expect(model.async(x).get() == sum_of_all(ranks), "another sum");
};
/// Of a sum on each shard of all ranks.
const auto gives_sums = [](const auto& model, const auto& x, const Ranks& ranks) {
  const double shards = static_cast<double>(ranks.size()) * devices;
  expect(model(x) == shards * sum_of_all(ranks), "another sum");
};
const auto gives_sums_later = [](const auto& model, const auto& x, const Ranks& ranks) {
  const double shards = static_cast<double>(ranks.size()) * devices;
  expect(model.async(x).get() == shards * sum_of_all(ranks), "another sum");
};

const auto gives_rules = [](const auto& model, const auto& x, const Ranks& ranks) {
  const auto [statistics, sums, means, joined, own] = model(x);
  const double sum = sum_of_all(ranks);
  expect(statistics.sum == sum && joined == sum && sums(sums.size() - 1) == sum, "another sum");
  expect(statistics.most == static_cast<double>(ranks.size() * rows - 1), "another maximum");
  expect(means.begin()->second == 2, "another mean");
  expect(own.size() == rows, "other rows");
};

Call call_fields(const Ranks& ranks, const auto& call) {
  return calls_of(ranks, Fields(), {}, [call](const auto& model, const auto& x, const Ranks& all) {
    const double before = model.model().sums.value(3);
    try {
      call(model, x, all);
    } catch (...) {  // fields are combined before the result is
      const double now = model.model().sums.value(3);
      expect(now == before || now == before + sum_of_all(all), "another sum in the model of a call that failed");
      throw;
    }
    expect(model.model().sums.value(3) == before + sum_of_all(all), "another sum in the model");
  });
}

template <class F>
void expect_error(const char* text, const F& f) {
  try {
    f();
  } catch (const fanout::Error& error) {
    if (std::string_view(error.what()).find(text) == std::string_view::npos) throw;
    return;
  }
  expect(false, "nothing was thrown");
}

Call call_gather(const Ranks& ranks) {
  return [&ranks, x = numbers(ranks), list = std::vector<float>{1, 2, 3}] {
    const auto tree = [&] {
      const Spared spared;
      return std::tuple{x.view(), list, std::map<std::string, int>{{"one", 1}}, fanout::psum(sum_of(x))};
    }();
    const auto all = ranks.gather(tree, 0);
    if (ranks.rank() != 0) return;
    expect(std::get<0>(*all).size() == ranks.size() * rows, "other rows");
    expect(sum_of(std::get<0>(*all)) == sum_of_all(ranks) && std::get<3>(*all) == sum_of_all(ranks), "another sum");
    expect(std::get<1>(*all).size() == 3 * ranks.size(), "another list");
  };
}

Call call_scatter(const Ranks& ranks) {
  const auto batch_of = [&ranks] {
    const Spared spared;
    std::map<std::string, Tensor<double, 2>> batch;
    for (const char* const name : {"one", "a second one with a long name"}) {
      batch[name] = Tensor<double, 2>::full({ranks.rank() == 0 ? ranks.size() * rows : 0, 2}, 3.0);
    }
    return batch;
  };
  return [&ranks, batch = batch_of(), list = std::vector<float>(5, 2.0F)] {
    const auto tree = [&] {
      const Spared spared;
      return std::tuple{batch, fanout::broadcast(list)};
    }();
    const auto [own, whole] = ranks.scatter(tree, 0);
    expect(own.at("one").extent(0) == rows && own.at("one")(rows - 1, 1) == 3, "other rows");
    expect(whole.size() == 5 || ranks.rank() != 0, "another list");
  };
}

Call call_broadcast(const Ranks& ranks, const Options& options = {}) {
  const Spared spared;
  Weights weights;
  weights.weights(0) = ranks.rank() == 0 ? 7 : static_cast<double>(ranks.rank());
  const auto model = model_of(ranks, weights, options);
  return [model] {
    model->broadcast_from(0);
    expect(model->model().weights(0) == 7, "other weights");
  };
}

Call call_ranks() {
  return [] {
    const Ranks ranks{MPI_COMM_WORLD};
    const Spared spared;
    const ParallelModel model{Sum(), host_devices(devices), Options{.ranks = ranks}};
    expect(model(numbers(ranks)) == sum_of_all(ranks), "another sum");
  };
}

template <std::size_t... n>
Call call_first(const Ranks& ranks, std::index_sequence<n...>) {
  static std::size_t next = 0;
  const Call calls[] = {calls_of(ranks, SumOf<n>(), {}, gives_sum)...};
  return calls[next++ % sizeof...(n)];
}

Call call_nested(const Ranks& ranks) {
  const auto inner = model_of(ranks, Sum());
  const auto outer = [inner](View<const double, 1> x) { return fanout::psum((*inner)(x)); };
  const auto made =
      std::make_shared<ParallelModel<decltype(outer), fanout::DeviceSet<fanout::HostDevice>>>(outer, host_devices(1));
  return [made, x = numbers(ranks), &ranks] { expect((*made)(x) == sum_of_all(ranks), "another sum"); };
}

const Options with_deadline{.deadline = 60s};
const std::vector<Kind> kinds{
    {"rows", false,
     [](const Ranks& ranks) {
       return calls_of(ranks, Rows(), {}, [](const auto& model, const auto& x, const Ranks&) {
         const auto made = model(x);
         expect(sum_of(made) == sum_of(x), "other rows");
       });
     }},
    {"psum", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), {}, gives_sum); }},
    {"first", true, [](const Ranks& ranks) { return call_first(ranks, std::make_index_sequence<12>()); }},
    {"rules", true, [](const Ranks& ranks) { return calls_of(ranks, Rules(), {}, gives_rules); }},
    {"large", true, [](const Ranks& ranks) { return calls_of(ranks, Rules{200'000}, {}, gives_rules); }},
    {"fields", true, [](const Ranks& ranks) { return call_fields(ranks, gives_sum); }},
    {"measured", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), {.measure = true}, gives_sum); }},
    {"dealt", true,
     [](const Ranks& ranks) { return calls_of(ranks, Sum(), {.split = fanout::DealtSplit()}, gives_sum); }},
    {"retried", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), {.retry = {.times = 1}}, gives_sum); }},
    {"nested", true, call_nested},
    {"into", true,
     [](const Ranks& ranks) {
       return calls_of(ranks, Sum(), {}, [](const auto& model, const auto& x, const Ranks& all) {
         double sum = 0;
         model.into(sum)(x);
         expect(sum == sum_of_all(all), "another sum");
       });
     }},
    {"async", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), {}, gives_sum_later); }},
    {"async_fields", true, [](const Ranks& ranks) { return call_fields(ranks, gives_sum_later); }},
    {"async_retried", true,
     [](const Ranks& ranks) { return calls_of(ranks, Sum(), {.retry = {.times = 1}}, gives_sum_later); }},
    {"collectives", true, [](const Ranks& ranks) { return calls_of(ranks, Meets(), {}, gives_sums); }},
    {"async_collectives", true, [](const Ranks& ranks) { return calls_of(ranks, Meets(), {}, gives_sums_later); }},
    {"swallowed", false,
     [](const Ranks& ranks) {
       return calls_of(ranks, Swallows(), {}, [](const auto& model, const auto& x, const Ranks&) { model(x); });
     }},
    {"buckets", true, [](const Ranks& ranks) { return calls_of(ranks, Buckets(), {}, gives_sums); }},
    {"throwing", false,
     [](const Ranks& ranks) {
       return calls_of(ranks, Fails(), {},
                       [](const auto& model, const auto& x, const Ranks&) { expect_error("eeee", [&] { model(x); }); });
     }},
    {"mismatched", false,
     [](const Ranks& ranks) {
       return calls_of(ranks, Rules{3 + ranks.rank()}, {}, [](const auto& model, const auto& x, const Ranks&) {
         expect_error("do not fit together", [&] { model(x); });
       });
     }},
    {"gather", true, call_gather},
    {"scatter", true, call_scatter},
    {"broadcast", true, [](const Ranks& ranks) { return call_broadcast(ranks); }},
    {"psum_deadline", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), with_deadline, gives_sum); }},
    {"rules_deadline", true, [](const Ranks& ranks) { return calls_of(ranks, Rules(), with_deadline, gives_rules); }},
    {"collectives_deadline", true,
     [](const Ranks& ranks) { return calls_of(ranks, Meets(), with_deadline, gives_sums); }},
    {"async_deadline", true, [](const Ranks& ranks) { return calls_of(ranks, Sum(), with_deadline, gives_sum_later); }},
    {"broadcast_deadline", true, [](const Ranks& ranks) { return call_broadcast(ranks, with_deadline); }},
    {"ranks", true, [](const Ranks&) { return call_ranks(); }},
};

// ---- each allocation --------------------------------------------------------------------------------

char running[200];

void tell_what_runs(int signal) {
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  std::signal(SIGABRT, SIG_DFL);
  std::signal(signal, SIG_DFL);
  std::raise(signal == SIGALRM ? SIGABRT : signal);
}

/// What a call has thrown, as text; none if it has thrown nothing.
struct Thrown {
  std::optional<std::string> text{};
  bool is_of_memory = false;
};

bool tells_of_memory(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const fanout::OutOfMemory&) {
    return true;
  } catch (const fanout::ReplicaError& error) {
    return std::all_of(error.failures().begin(), error.failures().end(),
                       [](const fanout::Failure& failure) { return tells_of_memory(failure.exception); });
  } catch (...) {
    return false;
  }
}

Thrown thrown_by(const Call& call) {
  try {
    const MayFail may_fail;
    call();
    return {};
  } catch (const std::exception& error) {
    return {.text = error.what(), .is_of_memory = tells_of_memory(std::current_exception())};
  }
}

int sum_over_ranks(int x) {
  MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return x;
}

struct Failing {
  const Kind& kind;
  std::size_t rank;
  bool used;             ///< the model has been called before
  std::size_t how_many;  ///< allocations fail, one after the other; 0: all
};

/// Returns how many allocations failed, and adds to `wrong` what was wrong.
std::size_t sweep(const Ranks& ranks, const Failing& failing, std::size_t& wrong) {
  const Spared spared;
  const auto say = [&](std::size_t n, const std::string& what) {
    std::printf(
        "FAILED: allocations %s, rank %zu of %zu, with a %s model, at allocation %zu of rank %zu (%zu fail): %s\n",
        failing.kind.name, ranks.rank(), ranks.size(), failing.used ? "used" : "new", n, failing.rank, failing.how_many,
        what.c_str());
    ++wrong;
  };
  Call call = failing.kind.make(ranks);
  for (std::size_t n = 1;; ++n) {
    std::snprintf(
        running, sizeof running,
        "\nHANGS OR CRASHES: allocations %s, rank %zu of %zu, %s model, allocation %zu of rank %zu (%zu fail)\n",
        failing.kind.name, ranks.rank(), ranks.size(), failing.used ? "used" : "new", n, failing.rank,
        failing.how_many);
    ::alarm(20);
    if (!failing.used && n != 1) call = failing.kind.make(ranks);
    if (failing.used) {
      const Thrown thrown = thrown_by(call);
      if (thrown.text) say(n, "without a failure: " + *thrown.text);
    }
    fanout::empty_host_cache();
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks.rank() == failing.rank) fail_allocations_from(n, failing.how_many);
    const Thrown thrown = thrown_by(call);
    const bool failed = has_failed();
    fail_allocation(0);
    const int threw = sum_over_ranks(thrown.text ? 1 : 0);
    const bool more = sum_over_ranks(failed ? 1 : 0) != 0;
    if (thrown.text && !more) say(n, "nothing failed, but it threw " + *thrown.text);
    const bool own = ranks.rank() == failing.rank;
    const auto says = [&thrown](const std::string& part) { return thrown.text->find(part) != std::string::npos; };
    if (failing.kind.tells && thrown.text && own && !thrown.is_of_memory) {
      say(n, "it tells of another failure: " + *thrown.text);
    }
    if (failing.kind.tells && thrown.text && !own && !says("rank " + std::to_string(failing.rank) + " on ") &&
        !says("rank " + std::to_string(failing.rank) + " had no memory") && !says("bad_alloc") &&
        !(failing.how_many == 0 && says("has left"))) {  // it had no memory for a text
      say(n, "it does not tell of the rank: " + *thrown.text);
    }
    if (failing.kind.tells && threw != 0 && threw != static_cast<int>(ranks.size())) {
      say(n, thrown.text ? "only some ranks threw, this one: " + *thrown.text : "only other ranks threw");
    }
    const Thrown next = thrown_by(call);
    if (next.text) say(n, "the next call: " + *next.text);
    ::alarm(0);
    if (!more) return n - 1;
  }
}

int run(std::vector<std::string> wanted, bool is_funneled) {
  const bool alone = std::erase(wanted, "--alone") != 0;
  for (const int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, tell_what_runs);
  const Spared spared;
  const Ranks ranks{MPI_COMM_WORLD};
  std::size_t found = 0;
  std::size_t failed = 0;
  std::size_t wrong = 0;
  for (const Kind& kind : kinds) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), kind.name) == wanted.end()) continue;
    if (is_funneled && std::string_view(kind.name).starts_with("async")) continue;  // they need MPI_THREAD_SERIALIZED
    ++found;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const bool used : {true, false}) {
        for (const std::size_t how_many : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
          if (alone && how_many != 1) continue;
          failed += sweep(ranks, {.kind = kind, .rank = rank, .used = used, .how_many = how_many}, wrong);
        }
      }
    }
  }
  if (ranks.rank() == 0) {
    std::printf("%zu kinds of calls on %zu ranks, %zu failed allocations\n", found, ranks.size(), failed);
  }
  return sum_over_ranks(static_cast<int>(wrong)) == 0 && found != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int count, char** arguments) {
  const char* const setting = std::getenv("FANOUT_TEST_THREAD_LEVEL");
  const bool is_funneled = setting != nullptr && std::string_view(setting) == "funneled";
  if (is_funneled) devices = 1;
  int level = 0;
  MPI_Init_thread(&count, &arguments, is_funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED, &level);
  const int status = run({arguments + 1, arguments + count}, is_funneled);
  MPI_Finalize();
  return status;
}
