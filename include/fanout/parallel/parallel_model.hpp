// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/call/call_chain.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_meeting.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/all_visible.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/fwd.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/parallel/apply.hpp>
#include <fanout/parallel/into.hpp>
#include <fanout/parallel/model_call.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/parallel/on_all.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/sharded_call.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/gate.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

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
/// ParallelModel moves the ownership and is not safe while calls run. Source is a DeviceSource; fwd.hpp has its
/// default, AllVisible<HostDevice>.
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

  ParallelModel(ParallelModel&& other) noexcept : state_(detail::exchange(other.state_, nullptr)) {}
  ParallelModel& operator=(ParallelModel&& other) noexcept {
    detail::swap(state_, other.state_);
    return *this;
  }
  ParallelModel(const ParallelModel&) = delete;
  ParallelModel& operator=(const ParallelModel&) = delete;
  ~ParallelModel() { delete state_; }

  /// Runs `forward` on the rows of the arguments and returns the gathered result, in the main device's memory or where
  /// Options::output says; waits for all replicas, and for the work that they gave their devices. See scatter() for
  /// what forward is handed, and gather() for what comes back.
  ///
  /// Throws ShapeMismatch for arguments whose rows disagree or results whose extents do, StructureMismatch for results
  /// of different structure, DeviceMismatch for arguments in a memory that no way is known from, ReplicaError if
  /// forward threw or its work on a device failed, and Timeout if it took longer than Options::deadline. All replicas
  /// have ended then, and the model can be called again.
  template <class... Args>
  auto operator()(Args&&... args) const {
    return run(false, {}, args...);
  }

  /// The same on every device, also if nothing is split: `model(on_all(), broadcast(x))`.
  template <class... Args>
  auto operator()(OnAll, Args&&... args) const {
    return run(true, {}, args...);
  }

  /// The same without waiting: the shards are queued at their devices at once, and the result is there later:
  ///
  ///     auto pending = model.async(std::move(batch));
  ///     ...                             // the devices' threads work meanwhile
  ///     auto result = pending.get();    // runs what no device has started, waits, and gathers
  ///
  /// Takes over arguments that are rvalues. Borrows those that are lvalues, which must stay alive and unchanged until
  /// the call has ended, at latest when its Pending is destroyed; what a view or a span shows must in any case. No
  /// thread is started for the call. It takes part in the model's order of calls now: its random numbers have its
  /// number, and where forward is not const, each replica sees the calls of a thread in the order in which they were
  /// made, in whatever order their results are taken. An update() that runs is waited for; one that comes later, and
  /// the model's destructor, run what is left of all pending calls and wait for them. The results may be taken after
  /// that.
  ///
  /// What the call throws, get() throws. This throws only what moving the arguments throws, and std::bad_alloc.
  template <class... Args>
  auto async(Args&&... args) const {
    return post(false, std::forward<Args>(args)...);
  }
  template <class... Args>
  auto async(OnAll, Args&&... args) const {
    return post(true, std::forward<Args>(args)...);
  }

  /// `model.into(result)(x)`: writes what the call would return into `result`, which has its structure: a Tensor or a
  /// View<T, R> of the same extents where it has a Tensor<T, R>, a std::vector<T> or a std::span<T> where it has a
  /// std::vector<T>, variables for anything else, in a tuple (`std::tie(scores, loss)`), a dict, a map or a struct.
  /// Arrays stay the memory that they are: the n-th output() that shards ask for is written right there if the n-th
  /// Tensor or View of the destination has its extents; anything else is gathered first, and then copied. Borrows an
  /// lvalue until the call has returned, and owns an rvalue. A shard may write there what another one still reads, so
  /// an argument that shows memory of such a Tensor or View is an InvalidArgument, and so are two arrays of the
  /// destination that overlap. To write in place, pass the same rows: `model.into(x)(inout(x))`.
  template <class D>
  Into<ParallelModel, D> into(D&& to) const {
    return {*this, std::forward<D>(to)};
  }

  /// Calls `f(model)`, which may change the model, and returns what it returns. Waits for running calls, and keeps new
  /// ones waiting; the next call of each replica sees the change, also if f throws. Throws Error from inside the
  /// model's own forward or update, where it would wait for itself.
  template <detail::ChangesOriginal<M> F>
  decltype(auto) update(F&& f) {
    if (detail::find_original(detail::current_link(), &state_->original) != nullptr) {
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

  using AllReplicas = typename detail::ReplicasOn<M, device_set>::type;

  /// A call from beginning to end.
  template <class... Args>
  auto run(bool on_all, std::span<const detail::OutputTarget> targets, Args&... args) const {
    using Inputs = ShardInputs<const Args&...>;
    using Call = detail::CallOfReplicas<AllReplicas, Inputs>;
    using Sharded = detail::ShardedCall<Call, Inputs, device_set>;
    if constexpr (Call::may_need_order()) {
      if (detail::shards_may_meet()) return start<Inputs>(on_all, targets, args...).get();
    }
    detail::EarlyRoom<typename Sharded::Body> room;  // first
    const Inputs inputs{
        state_->plan(detail::count_rows(state_->options.axis, args...), on_all), {args...}, state_->options.axis};
    const Entered entered(*state_);
    state_->pending.wait_for_earlier(Call::order());
    typename Sharded::Outputs outputs(inputs.plan, state_->settings, state_->start(targets, entered.number()),
                                      devices().ids().data());
    Sharded call(state_->replicas, devices(), inputs, outputs, room);
    call.dispatch();
    call.run_own();
    call.join();
    call.combine();
    return outputs.gather();
  }

  template <class... Args>
  auto post(bool on_all, Args&&... args) const {
    static_assert(!(detail::refers_to_temporary<std::remove_cvref_t<Args>> || ...),
                  "fanout: an asynchronous call keeps its arguments until its result is there, and a tuple of rvalue "
                  "references shows temporaries, which are gone by then; pass a tuple of values, std::tuple{...}");
    return start<detail::shard_inputs_t<Args...>>(on_all, {}, std::forward<Args>(args)...);
  }

  template <class Inputs, class... Args>
  auto start(bool on_all, std::span<const detail::OutputTarget> targets, Args&&... args) const {
    std::optional<Entered> entered;
    std::exception_ptr failure;
    Plan plan;
    CallStart begin;
    try {
      plan = state_->plan(detail::count_rows(state_->options.axis, args...), on_all);
      entered.emplace(*state_);
      detail::settle_inputs(std::tie(args...));
      begin = state_->start(targets, entered->number());
    } catch (...) {
      failure = std::current_exception();
    }
    auto* call = detail::make_pooled<detail::ModelCall<AllReplicas, Inputs>>(
        Inputs{std::move(plan), {std::forward<Args>(args)...}, state_->options.axis}, state_->replicas,
        state_->settings, begin, std::move(failure));
    Pending<gathered_t<typename detail::CallOfReplicas<AllReplicas, Inputs>::R>> pending(call);
    if (call->post(state_->pending, state_->gate)) entered->leave_to_others();
    return pending;
  }

  using State = detail::ModelState<M, device_set>;
  using Entered = detail::EnteredModel<State>;
  using Update = detail::ModelUpdate<State>;

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

}}  // namespace fanout::v0
