// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each allocation of each kind of call fails once, on 1, 3, 9 and 17 devices. Above eight, what a call keeps on its
// caller's stack has no room there. `failing_allocations [KIND]...` runs these kinds alone.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#include <fanout/model/factory.hpp>
#include <fanout/observe.hpp>
#include <fanout/worker/registry.hpp>
#include <fanout/worker/system_threads.hpp>

#include "failing_new.hpp"
#include "sweep.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace random_programs { namespace {

using Rows = std::vector<double>;
using Shown = std::span<const double>;
using Call = std::function<void()>;

constexpr int rows = 40;

Rows numbers(int count = rows) {
  const Spared spared;
  Rows x(static_cast<std::size_t>(count));
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}
constexpr double sum_of_all = rows * (rows + 1) / 2.0;

/// Throws if a result is another one.
void expect(bool right, const char* what) {
  const Spared spared;
  if (!right) throw std::logic_error(what);
}
void expect_equal(const Rows& found, const Rows& wanted) { expect(found == wanted, "other rows than were handed in"); }

double sum_of(Shown x) { return std::accumulate(x.begin(), x.end(), 0.0); }

// ---- models -----------------------------------------------------------------------------------------

struct Echo {
  Rows forward(Shown x) const { return {x.begin(), x.end()}; }
};
struct Mutating {
  std::vector<int> state{1, 2, 3};
  Rows forward(Shown x) {
    ++state[0];
    return {x.begin(), x.end()};
  }
};
struct Windows {
  auto forward(Context auto& ctx, Shown x) const {
    std::vector<fanout::Output<double, 1>> made;  // more than have a place of their own
    for (int i = 0; i < 10; ++i) made.push_back(fanout::output<double>(ctx));
    for (auto& output : made) std::copy(x.begin(), x.end(), output.data());
    return made;
  }
};
struct Statistics {
  Tensor<double, 1> all;
  fanout::Sum<double> sum;
  fanout::Max<double> greatest;
  fanout::First<std::string> first;
  fanout::PerShard<std::string> texts;
};
struct Trees {
  auto forward(Context auto& ctx, const std::map<std::string, View<const double, 2>>& x,
               const std::string& name) const {
    const auto& all = x.at("one");
    Tensor<double, 1> sums(all.extent(0));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = all(i, 0) + all(i, 1);
    const double sum = sum_of(sums.values());
    return fanout::dict(
        "statistics"_k =
            Statistics{sums, sum, sums.values().back(), name, std::string(20, 'x') + std::to_string(ctx.rank())},
        "columns"_k = fanout::concat<1>(Tensor<double, 2>(2, 3)), "stack"_k = fanout::stack(Rows{1, sum}),
        "kept"_k = fanout::sharded(Rows{sum}), "list"_k = std::vector{std::optional(Tensor<double, 2>(all))},
        "first"_k = fanout::first(std::tuple(name, sum)));
  }
};
struct Meets {
  double forward(Context auto& ctx, Shown x) const {
    auto communicator = ctx.communicator();
    std::vector<double> sums(3, sum_of(x));
    communicator.all_reduce(sums);
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
    return sums[0];
  }
};
struct MeetsAndChanges {
  int calls = 0;
  double forward(Context auto& ctx, Shown x) {
    ++calls;
    double sum = sum_of(x);
    ctx.communicator().all_reduce(sum);
    return sum;
  }
};
/// Calls that do not fit together.
struct Disagrees {
  double forward(Context auto& ctx, Shown x) const {
    auto communicator = ctx.communicator();
    double sum = sum_of(x);
    if (ctx.rank() == 0) {
      communicator.barrier();
    } else {
      communicator.all_reduce(sum);
    }
    return sum;
  }
};
struct Normalised {
  fanout::Mean<Tensor<double, 1>> mean;
  fanout::Sum<std::vector<long>> counts;
  fanout::Sum<Tensor<double, 1>> sums;
  fanout::PerReplica<std::vector<int>> cache;

  Rows forward(Shown x) {
    const Spared spared;
    mean.value = Tensor<double, 1>(3);
    for (double& value : mean.value) value = sum_of(x) / static_cast<double>(x.size());
    if (counts.value.empty()) counts.value.resize(30);
    counts.value[7] += static_cast<long>(x.size());
    if (sums.value.empty()) sums.value = Tensor<double, 1>(30);
    sums.value[3] += sum_of(x);
    cache->resize(5);
    return {x.begin(), x.end()};
  }
};
struct Session {
  std::vector<int> weights = std::vector<int>(20, 1);
  Rows forward(Shown x) { return {x.begin(), x.end()}; }
};

// ---- kinds of calls ---------------------------------------------------------------------------------

/// A kind: makes a call for so many devices, which throws if its result is wrong. Twice each: of a model that stays,
/// and of a new one for each call.
struct Kind {
  const char* name;
  std::function<Call(int devices, bool stays)> make;
};

/// `use(model)` for a model of `make()`.
template <class Make, class Use>
Call calls_of(const Make& make, bool stays, const Use& use) {
  if (!stays) {
    return [make, use] {
      auto model = make();
      use(model);
    };
  }
  auto model = std::make_shared<decltype(make())>(make());
  return [model, use] { use(*model); };
}

template <class M>
auto on(int devices, const M& original, fanout::Options options = {}) {
  return [=] { return ParallelModel{M(original), host_devices(devices), options}; };
}

void echoes(const auto& model) {
  static const Rows x = numbers();
  expect_equal(model(x), x);
}

Call call_trees(int devices, bool stays) {
  return calls_of(on(devices, Trees{}), stays, [](const auto& model) {
    static const std::map<std::string, Tensor<double, 2>> x = [] {
      const Spared spared;
      Tensor<double, 2> one(rows, 2);
      std::iota(one.begin(), one.end(), 0.0);
      return std::map<std::string, Tensor<double, 2>>{{"one", one}, {"a second one with a long name", one}};
    }();
    const auto result = model(x, std::string(30, 'n'));
    const Statistics& statistics = result["statistics"_k];
    expect(statistics.all.size() == rows && statistics.all[1] == 5, "other sums");
    expect(statistics.sum == 80 * 79 / 2.0 && statistics.greatest == 78 + 79, "another sum");
    expect(statistics.texts.size() == result["kept"_k].size(), "other shards");
    expect(result["list"_k].at(0)->extent(0) == rows, "other rows");
  });
}

Call call_into(int devices, bool stays) {
  auto to = std::make_shared<std::vector<Tensor<double, 1>>>();
  for (int i = 0; i < 10; ++i) to->push_back(Tensor<double, 1>(rows));
  return calls_of(on(devices, Windows{}), stays, [to](const auto& model) {
    static const Rows x = numbers();
    model.into (*to)(x);
    for (const auto& tensor : *to) expect(tensor[rows - 1] == rows, "another last row");
  });
}

Call call_with_combined_fields(int devices, bool stays) {
  return calls_of(on(devices, Normalised{}), stays, [](const auto& model) {
    static const Rows x = numbers();
    const auto counted = [&model] { return model.model().counts.value.empty() ? 0 : model.model().counts.value[7]; };
    const auto added = [&model] { return model.model().sums.value.empty() ? 0 : model.model().sums.value[3]; };
    const long before = counted();
    const double sum_before = added();
    try {
      expect_equal(model(x), x);
    } catch (const fanout::Error&) {
      expect((counted() == before) == (added() == sum_before), "fields are combined in part");
      throw;
    } catch (const std::bad_alloc&) {
      expect((counted() == before) == (added() == sum_before), "fields are combined in part");
      throw;
    }
    expect(counted() == before + rows && added() == sum_before + sum_of_all, "other sums in the model");
  });
}

Call call_disagreeing(int devices, bool stays) {
  return calls_of(on(devices, Disagrees{}), stays, [devices](const auto& model) {
    static const Rows x = numbers();
    try {
      expect(model(x).size() == 1 && devices == 1, "calls that do not fit together have run");
    } catch (const fanout::ReplicaError& error) {
      if (error.get_if<fanout::StructureMismatch>() == nullptr) throw;
    }
  });
}

Call call_late(int devices, bool stays) {
  const fanout::Options options{.deadline = std::chrono::nanoseconds(1)};
  return calls_of(on(devices, Echo{}, options), stays, [](const auto& model) {
    static const Rows x = numbers();
    try {
      static_cast<void>(model(x));
      expect(false, "a call was in time after a nanosecond");
    } catch (const fanout::Timeout& timeout) {
      expect(timeout.late().size() != 0, "no shard was late");
    }
  });
}

/// As a call does whose caller is on the core of another device.
void move_this_thread() {
  using fanout::detail::SystemThreads;
  const std::vector<int>& cores = []() -> const std::vector<int>& {
    const Spared spared;
    std::this_thread::sleep_for(std::chrono::microseconds(1100));  // it moves a thread once a millisecond
    static const std::vector<int> all = SystemThreads::process_cores();
    return all;
  }();
  SystemThreads::move_to(cores);
}

const std::vector<Kind> kinds{
    {"plain",
     [](int n, bool stays) { return calls_of(on(n, Echo{}), stays, [](const auto& model) { echoes(model); }); }},
    {"moved",
     [](int n, bool stays) {
       return calls_of(on(n, Echo{}), stays, [](const auto& model) {
         move_this_thread();
         echoes(model);
       });
     }},
    {"mutating",
     [](int n, bool stays) { return calls_of(on(n, Mutating{}), stays, [](const auto& model) { echoes(model); }); }},
    {"per_replica",
     [](int n, bool stays) {
       const auto make = [n] { return ParallelModel{fanout::per_replica(Echo{}), host_devices(n)}; };
       return calls_of(make, stays, [](const auto& model) { echoes(model); });
     }},
    {"factory",
     [](int n, bool stays) {
       const auto make = [n] { return ParallelModel{fanout::factory([] { return Session{}; }), host_devices(n)}; };
       return calls_of(make, stays, [](const auto& model) { echoes(model); });
     }},
    {"async",
     [](int n, bool stays) {
       return calls_of(on(n, Echo{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         auto first = model.async(x);
         auto second = model.async(Rows(x));
         expect_equal(second.get(), x);
         expect_equal(first.get(), x);
       });
     }},
    {"async_in_order",
     [](int n, bool stays) {
       return calls_of(on(n, Mutating{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         auto dropped = model.async(x);
         auto second = model.async(x);
         echoes(model);
         expect_equal(second.get(), x);
       });
     }},
    {"async_combined",
     [](int n, bool stays) {
       return calls_of(on(n, Normalised{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         expect_equal(model.async(x).get(), x);
       });
     }},
    {"trees", call_trees},
    {"into", call_into},
    {"outputs",
     [](int n, bool stays) {
       return calls_of(on(n, Windows{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         const auto made = model(x);
         expect(made.size() == 10 && made[9].size() == rows && made[9][0] == 1, "other outputs");
       });
     }},
    {"large",
     [](int n, bool stays) {
       const auto back = [](View<const double, 2> x) { return x; };
       return calls_of(on(n, back), stays, [](const auto& model) {
         static const Tensor<double, 2> x(1 << 11, 80);  // so large that ten devices copy it together
         expect(model(x).extents() == x.extents(), "other extents");
       });
     }},
    {"large_columns",
     [](int n, bool stays) {
       const auto back = [](View<const double, 2> x) { return x; };
       return calls_of(on(n, back, {.axis = 1}), stays, [](const auto& model) {
         static const Tensor<double, 2> x(80, 1 << 11);
         expect(model(x).extents() == x.extents(), "other extents");
       });
     }},
    {"columns",
     [](int n, bool stays) {
       const auto back = [](View<const double, 2> x) { return x; };
       return calls_of(on(n, back, {.axis = 1}), stays, [](const auto& model) {
         static const Tensor<double, 2> x(3, rows);
         expect(model(x).extents() == x.extents(), "other extents");
       });
     }},
    {"sharded",
     [](int n, bool stays) {
       const auto keep = [](Shown x) {
         return fanout::sharded(Tensor<double, 1>(View<const double, 1>(x.data(), x.size())));
       };
       return calls_of(on(n, keep), stays, [n](const auto& model) {
         static const Rows x = numbers();
         const ParallelModel next{[](View<const double, 1> own) { return fanout::psum(sum_of(own.values())); },
                                  host_devices(n)};
         const auto kept = model(x);
         expect(next(kept) == sum_of_all, "another sum");
       });
     }},
    {"stages",
     [](int n, bool) -> Call {
       return [n] {
         static const Rows x = numbers();
         const auto devices = host_devices(n);
         const auto replicas = fanout::replicate(Mutating{}, devices);
         const auto inputs = fanout::scatter(devices, x);
         expect_equal(fanout::gather(fanout::apply(replicas, inputs)), x);
       };
     }},
    {"nested",
     [](int n, bool stays) {
       auto inner = std::make_shared<decltype(on(n, Echo{})())>(Echo{}, host_devices(n));
       const auto outer = [inner](Shown x) { return (*inner)(x); };
       return calls_of(on(n, outer), stays, [](const auto& model) { echoes(model); });
     }},
    {"update",
     [](int n, bool stays) {
       return calls_of(on(n, Mutating{}), stays, [](auto& model) {
         model.update([](Mutating& original) { original.state.resize(original.state.size() % 5 + 1); });
         echoes(model);
       });
     }},
    {"throwing",
     [](int n, bool stays) {
       const auto fails = [](Shown x) -> Rows {
         throw std::runtime_error(std::string(30, 'e') + std::to_string(x.size()));
       };
       return calls_of(on(n, fails), stays, [](const auto& model) {
         static const Rows x = numbers();
         try {
           static_cast<void>(model(x));
           expect(false, "nothing was thrown");
         } catch (const fanout::ReplicaError& error) {
           if (error.get_if<std::runtime_error>() == nullptr) throw;
         }
       });
     }},
    {"late", call_late},
    {"combined_fields", call_with_combined_fields},
    {"collectives",
     [](int n, bool stays) {
       return calls_of(on(n, Meets{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         const Tensor<double, 1> sums = model(x);
         for (const double sum : sums) expect(sum == sum_of_all, "another sum");
       });
     }},
    {"collectives_async",
     [](int n, bool stays) {
       return calls_of(on(n, MeetsAndChanges{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         auto first = model.async(x);
         const Tensor<double, 1> sums = model(x);
         for (const double sum : sums) expect(sum == sum_of_all, "another sum");
         expect(first.get().size() == sums.size(), "another number of shards");
       });
     }},
    {"collectives_that_do_not_fit", call_disagreeing},
    {"measured",
     [](int n, bool stays) {
       return calls_of(on(n, Echo{}, {.measure = true}), stays, [](const auto& model) {
         echoes(model);
         const fanout::Report report = model.report();
         expect(!report.devices().empty(), "no devices in the report");
       });
     }},
    {"traced",
     [](int n, bool stays) {
       return calls_of(on(n, Echo{}), stays, [](const auto& model) {
         static const Rows x = numbers();
         expect_equal(fanout::trace("/dev/null", [&model] { return model(x); }), x);
       });
     }},
    {"traced_to_no_file",
     [](int n, bool stays) {
       return calls_of(on(n, Echo{}), stays, [](const auto& model) {
         try {
           fanout::trace("/dev/null/folder", [] {});
           expect(false, "a trace was written to no file");
         } catch (const fanout::OutOfMemory&) {
           throw;
         } catch (const fanout::Error& error) {
           const Spared spared;
           expect(std::string(error.what()).find("cannot be written") != std::string::npos, error.what());
         }
         echoes(model);  // tells no trace that has ended
       });
     }},
};

/// Empty if nothing is wrong.
Sweep sweep(const Kind& kind, int devices, bool stays) {
  const Running running(std::string("failing_allocations ") + kind.name + ", with " + std::to_string(devices) +
                        " devices");
  const Spared spared;
  const Call call = kind.make(devices, stays);
  const auto again = [&call]() -> std::string {
    try {
      call();
      return {};
    } catch (...) {
      return message_of(std::current_exception());
    }
  };
  if (std::string wrong = again(); !wrong.empty()) return {.wrong = "without a failure: " + wrong};
  return fail_each_allocation([] {}, call, again);
}

/// The same of the first call on a device, which starts its thread. Always other devices, since threads stay. Their
/// names are as long as names can be.
Sweep sweep_first_calls() {
  const Running running("failing_allocations first_call");
  const Spared spared;
  const Rows x = numbers();
  Sweep found;
  for (bool failed = true; failed; found.failed += failed ? 1 : 0) {
    std::vector<fanout::HostDevice> devices;
    for (int i = 0; i < 2; ++i) {
      const int index = 1'000'000 + 2 * static_cast<int>(found.failed) + i;
      devices.emplace_back(fanout::backend::registry().worker({.kind = "longname", .index = index},
                                                              fanout::backend::registry().cores(), false));
    }
    const ParallelModel model{Echo{}, fanout::DeviceSet<fanout::HostDevice>(devices)};
    fail_allocation(found.failed + 1);
    try {
      const MayFail may_fail;
      static_cast<void>(model(x));
    } catch (const std::bad_alloc&) {
    } catch (const fanout::Error&) {
    }
    failed = has_failed();
    fail_allocation(0);
    if (model(x) != x) found.wrong = "the next call returned other rows";
  }
  return found;
}

int run(const std::vector<std::string>& wanted) {
  std::size_t failed = 0;
  std::size_t wrong = 0;
  std::size_t found = 0;
  const auto is_wanted = [&wanted](const char* name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  const auto count = [&](const Sweep& one, const char* name, int devices, const char* what) {
    failed += one.failed;
    if (one.wrong.empty()) return;
    ++wrong;
    std::printf("FAILED: failing_allocations %s, with %d devices, of a %s model: %s\n", name, devices, what,
                one.wrong.c_str());
  };
  if (is_wanted("first_call")) {
    ++found;
    count(sweep_first_calls(), "first_call", 2, "new");
  }
  for (const Kind& kind : kinds) {
    if (!is_wanted(kind.name)) continue;
    ++found;
    for (const int devices : {1, 3, 9, 17}) {
      for (const bool stays : {true, false})
        count(sweep(kind, devices, stays), kind.name, devices, stays ? "used" : "new");
    }
  }
  std::printf("%zu kinds of calls, %zu failed allocations: %zu wrong\n", found, failed, wrong);
  return wrong == 0 && found != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}}  // namespace random_programs

int main(int count, char** arguments) { return random_programs::run({arguments + 1, arguments + count}); }
