// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/device/all_visible.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/parallel/apply.hpp>
#include <fanout/parallel/batch_rows.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/parallel/into.hpp>
#include <fanout/parallel/on_all.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/parallel/replicate.hpp>
#include <fanout/parallel/shard_inputs.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/gate.hpp>

namespace fanout::inline v0 {

namespace detail {

template <class M, class Devices>
struct ReplicasOn;
template <class M, class... Ds>
struct ReplicasOn<M, DeviceSet<Ds...>> {
  using type = Replicas<M, Ds...>;
};

/// What update() takes.
template <class F, class M>
concept ChangesOriginal = requires(F&& change, Original<M>& original) {
  static_cast<F&&>(change)(original.model);
};

/// A source whose set names kinds that are no devices: they are refused where the set is made.
template <class S>
concept SelectsNoDevices = requires(const S& source) {
  requires is_device_set<std::remove_cvref_t<decltype(source.select())>>;
  requires !is_set_of_devices<std::remove_cvref_t<decltype(source.select())>>;
};

/// The devices of a source. For a type that is none, host devices stand in, so that the sentence with which it is
/// refused is the only error.
template <class Source>
decltype(auto) select_from(const Source& source) {
  if constexpr (DeviceSource<Source>) {
    return source.select();
  } else {
    if constexpr (SelectsNoDevices<Source>) {
      static_cast<void>(source.select());
    } else {
      static_assert(DeviceSource<Source>,
                    "fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives "
                    "one: host_devices(2) for a number, DeviceSet(std::vector{device}) for devices of your own choice");
    }
    return host_devices();
  }
}

}  // namespace detail

/// A model with a replica on every device of a set. A call splits the arguments by rows, runs the replicas at the same
/// time and gathers what they return:
///
///     fanout::ParallelModel model{Model{...}, fanout::host_devices(2)};
///     auto [output, extras] = model(input);   // input: Tensor<float, 2> of [30, 5] -> 15 + 15 rows
///
/// M is any type with a `forward` or a call operator, const or not, with a context or not; a lambda will do. Given as
/// per_replica(m) it is copied for each device in any case, and factory(f) makes one on each. Fields of M may say whose
/// they are: a Mean<T>, Sum<T> and their kin are combined after each call, a PerReplica<T> is each replica's own, a
/// Shared<T> is one for all. Calls are const and may come from many threads at once. The model is owned; moving a
/// ParallelModel moves the ownership and is not safe while calls run. Source is a DeviceSource; fwd.hpp has its default,
/// AllVisible<HostDevice>.
template <class M, class Source>
class ParallelModel {
 public:
  using model_type = M;
  using device_set = std::remove_cvref_t<decltype(detail::select_from(std::declval<const Source&>()))>;

  /// Takes the model over, also one that is itself a ParallelModel, whose calls are then split once more; or makes one
  /// on each device with a factory(). Throws InvalidDeviceId if the source has no devices or `options.output` is not
  /// one of them, and InvalidArgument if the split policy does not fit the number of devices: it is asked for the plan
  /// of no rows. A factory is not used then; if it throws, FactoryError is thrown.
  ParallelModel(M original, const Source& source, Options options = {})
      : state_(new State(std::move(original), detail::select_from(source), std::move(options))) {}

  /// On the devices that a default constructed source selects.
  explicit ParallelModel(M original, Options options = {}) requires std::default_initializable<Source>
      : ParallelModel(std::move(original), Source{}, std::move(options)) {}

  ParallelModel(ParallelModel&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  ParallelModel& operator=(ParallelModel&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ParallelModel(const ParallelModel&) = delete;
  ParallelModel& operator=(const ParallelModel&) = delete;
  ~ParallelModel() { delete state_; }

  /// Runs `forward` on the rows of the arguments and returns the gathered result; waits for all replicas. See scatter()
  /// for what forward is handed, and gather() for what comes back.
  ///
  /// Throws ShapeMismatch for arguments whose rows disagree or results whose extents do, StructureMismatch for results
  /// of different structure, DeviceMismatch for arguments in another memory, and ReplicaError if forward threw. All
  /// replicas have ended then, and the model can be called again.
  template <class... Args>
  auto operator()(Args&&... args) const {
    return run(false, {}, args...);
  }

  /// The same on every device, also if nothing is split: `model(on_all(), broadcast(x))`.
  template <class... Args>
  auto operator()(OnAll, Args&&... args) const {
    return run(true, {}, args...);
  }

  /// `model.into(result)(x)`: writes what the call would return into `result`, which has its structure: a Tensor or a
  /// View<T, R> of the same extents where it has a Tensor<T, R>, a std::vector<T> or a std::span<T> where it has a
  /// std::vector<T>, variables for anything else, in a tuple (`std::tie(scores, loss)`), a dict, a map or a struct.
  /// Arrays stay the memory that they are: the n-th output() that shards ask for is written right there if the n-th
  /// Tensor or View of the destination has its extents; anything else is gathered first, and then copied. Borrows an
  /// lvalue until the call has returned, and owns an rvalue. No argument of the call should show the same elements.
  template <class D>
  Into<ParallelModel, D> into(D&& to) const {
    return {*this, std::forward<D>(to)};
  }

  /// Calls `f(model)`, which may change the model, and returns what it returns. Waits for running calls, and keeps new
  /// ones waiting; the next call of each replica sees the change, also if f throws. Throws Error from inside the
  /// model's own forward or update, where it would wait for itself.
  template <detail::ChangesOriginal<M> F>
  decltype(auto) update(F&& f) {
    if (find_original(current_link(), &state_->original) != nullptr) {
      throw Error(explain({.what = "a model was updated from inside its own forward or update",
                           .advice = "update it after the call has returned"}));
    }
    const Update update(*state_);
    return std::forward<F>(f)(state_->original.model);
  }

  template <class F>
    requires(!detail::HasOriginal<M>)
  void update(F&&) {
    static_assert(detail::HasOriginal<M>,
                  "fanout: a model that a factory makes on each device has no original that update() could change and "
                  "copy; make a new ParallelModel");
  }

  /// The original. Not to be read while update() runs, nor, if it has fields that are combined after a call, while a
  /// call runs that changes these.
  const auto& model() const noexcept requires detail::HasOriginal<M> { return state_->original.model; }
  void model() const noexcept requires(!detail::HasOriginal<M>) {
    static_assert(detail::HasOriginal<M>,
                  "fanout: a model that a factory makes on each device has no original; replica(i).model() is the one "
                  "on the i-th device");
  }

  const device_set& devices() const noexcept { return state_->replicas.devices(); }

  /// The replica on the i-th device of a set of one kind.
  const auto& replica(std::size_t i) const {
    if (i >= devices().size()) {
      throw InvalidDeviceId(explain({.what = "Invalid device id",
                                     .where = "replica",
                                     .expected = "a position below " + std::to_string(devices().size()),
                                     .found = std::to_string(i)}));
    }
    return state_->replicas[i];
  }

  /// How so many rows would be shared out. Throws InvalidArgument if the split policy makes no valid plan.
  Plan plan(std::size_t rows) const { return state_->plan(rows); }

 private:
  template <class Model, class D>
  friend class Into;

  template <class... Args>
  auto run(bool on_all, std::span<const OutputTarget> targets, Args&... args) const {
    const Call entered(*state_);
    const detail::CountRows count = detail::count_rows(state_->options.axis, args...);
    const ShardInputs<const Args&...> inputs{state_->plan(count, on_all), {args...}, state_->options.axis};
    return fanout::gather(fanout::apply(state_->replicas, inputs,
                                        {.target = state_->target,
                                         .targets = targets.data(),
                                         .target_count = targets.size(),
                                         .axis = state_->options.axis,
                                         .seed = state_->options.seed,
                                         .number = state_->calls.fetch_add(1, MemoryOrder::relaxed),
                                         .rethrow_single = state_->options.rethrow_single}));
  }

  struct State {
    State(M&& model, const device_set& devices, Options&& with)
        : options(std::move(with)), target(check_options(devices)), replicas(std::move(model), devices) {}

    Plan plan(std::size_t rows) const { return plan(rows, replicas.size()); }
    Plan plan(std::size_t rows, std::size_t devices) const {
      Plan plan = options.split(rows, devices);
      check_plan(plan, rows, devices);
      return plan;
    }

    Plan plan(const detail::CountRows& count, bool on_all) const {
      if (count.plan != nullptr) {
        check_sharded(*count.plan);
        return *count.plan;
      }
      if (count.rows) return plan(*count.rows);
      return on_all ? plan(0) : Plan{{.rows = {}, .device = 0}};
    }

    void check_sharded(const Plan& plan) const {
      for (const Shard& shard : plan) {
        if (shard.device < replicas.size()) continue;
        throw InvalidArgument(explain({.what = "an argument is sharded over other devices than the model's",
                                       .expected = std::to_string(replicas.size()) + " devices or fewer",
                                       .found = to_string(plan),
                                       .advice = "gather() it first"}));
      }
    }

    /// Before there are replicas, since a factory may take long to make them. Returns where results are gathered.
    Memory check_options(const device_set& devices) const {
      static_cast<void>(plan(0, devices.size()));
      const DeviceId wanted = options.output.value_or(devices.main_device());
      if (wanted.kind == host_memory.owner.kind) return Memory{};
      Memory memory;
      bool found = false;
      std::string known;
      for (std::size_t i = 0; i < devices.size(); ++i) {
        devices.visit(i, [&](const auto& device) {
          if (device.id() == wanted) {
            memory = device.memory();
            found = true;
          }
          known += (i == 0 ? "" : ", ") + to_string(device.id());
        });
      }
      if (!found) {
        throw InvalidDeviceId(explain({.what = "Invalid device id",
                                       .where = "Options::output",
                                       .expected = "a device of the model (" + known + ") or the host",
                                       .found = to_string(wanted)}));
      }
      return memory;
    }

    Options options;
    Memory target;
    typename detail::ReplicasOn<M, device_set>::type replicas;
    Original<M>& original = replicas.original();
    mutable Gate gate;
    mutable Atomic<std::uint32_t> calls{0};
  };

  /// Keeps update() out for as long as a call runs. A call from inside the model's own forward is covered by the outer
  /// one.
  class Call {
   public:
    explicit Call(const State& state) : state_(state) {
      const CallLink* const outer = find_original(current_link(), &state.original);
      if (outer != nullptr && outer->updating) {
        throw Error(explain({.what = "a model was called from inside its own update",
                             .advice = "call it after update() has returned"}));
      }
      entered_ = outer == nullptr;
      if (!entered_) return;
      if (current_link() == nullptr) {
        state_.gate.enter();
      } else {
        state_.gate.enter_from_inside_another();
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
      if (entered_) state_.gate.leave();
    }

   private:
    const State& state_;
    bool entered_ = false;
  };

  class Update {
   public:
    explicit Update(State& state)
        : state_(state),
          link_{.caller = current_link(), .original = &state.original, .updating = true},
          entered_(link_),
          closed_(state.gate) {}
    Update(const Update&) = delete;
    Update& operator=(const Update&) = delete;
    ~Update() { state_.original.version.fetch_add(1, MemoryOrder::release); }

   private:
    State& state_;
    CallLink link_;
    EnteredLink entered_;
    ClosedGate closed_;  // last, so that it opens first, when the version has moved on
  };

  State* state_;
};

// ParallelModel{std::move(other)} of another ParallelModel is that model, moved, as with std::optional and std::vector;
// with devices, with options or with its template arguments spelt out it wraps it.
template <class M>
ParallelModel(M) -> ParallelModel<M>;
template <class M>
ParallelModel(M, Options) -> ParallelModel<M>;
template <class M, class Source>
ParallelModel(M, Source) -> ParallelModel<M, Source>;
template <class M, class Source>
ParallelModel(M, Source, Options) -> ParallelModel<M, Source>;

}  // namespace fanout::inline v0
