// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/text.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/all_visible.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/device/thread_hold.hpp>
#include <fanout/fwd.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/measure/call_meter.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/parallel/apply.hpp>
#include <fanout/parallel/given_devices.hpp>
#include <fanout/parallel/into.hpp>
#include <fanout/parallel/model_call.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/parallel/model_update.hpp>
#include <fanout/parallel/on_all.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/sharded_call.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 {

/// A model with a replica on every device of a set. A call splits the arguments by rows, runs the replicas at the same
/// time and gathers what they return:
///
///     fanout::ParallelModel model{Model{...}, fanout::host_devices(2)};
///     auto [output, extras] = model(input);   // input: Tensor<float, 2> of [30, 5] -> 15 + 15 rows
///
/// M is any type with a `forward` or a call operator, for example a lambda. `forward` may be const or not, and may take
/// a context first. per_replica(m) copies the model for each device. factory(f) makes a model on each device. Fields of
/// M may have rules of their own: Mean<T>, Sum<T>, Max<T>, Min<T> and First<T> are combined after each call, each
/// replica has its own PerReplica<T>, and all replicas share a Shared<T>.
///
/// Calls are const and thread-safe. The ParallelModel owns the model. It must not be moved while calls run. Source is a
/// DeviceSource, by default AllVisible<HostDevice> (fwd.hpp).
template <class M, class Source>
class ParallelModel {
 public:
  using model_type = M;
  using device_set = std::remove_cvref_t<decltype(detail::select_from(std::declval<const Source&>()))>;

  /// Takes over the model, or makes one on each device with a factory(). The model may be a ParallelModel, which splits
  /// each shard once more. Throws InvalidDeviceId if the source has no devices or if `options.output` is none of them,
  /// InvalidArgument if the split policy does not fit the number of devices, and FactoryError if the factory throws.
  ParallelModel(M original, const Source& source, Options options = {})
      : state_(new State(std::move(original), detail::select_from(source), std::move(options))) {}

  /// The same on the devices of a default constructed source.
  explicit ParallelModel(M original, Options options = {}) requires std::default_initializable<Source>
      : ParallelModel(std::move(original), Source{}, std::move(options)) {}

  // These two refuse other devices with a readable error. M is not deduced from them.
  template <detail::NotDevicesOf<Source> Given>
  ParallelModel(std::type_identity_t<M>, const Given&, const Options& = {}) : state_(nullptr) {
    detail::refuse_devices<Given, Source>();
  }
  template <class Given>
    requires(!std::same_as<Given, Source>)
  ParallelModel(ParallelModel<std::type_identity_t<M>, Given>&&)  // NOLINT(google-explicit-constructor)
      : state_(nullptr) {
    detail::refuse_devices<Given, Source>();
  }

  ParallelModel(ParallelModel&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  ParallelModel& operator=(ParallelModel&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ParallelModel(const ParallelModel&) = delete;
  ParallelModel& operator=(const ParallelModel&) = delete;
  // Not inlined: g++ 12 -O1 would warn that state_ may be uninitialised in an empty std::optional.
  [[gnu::noinline]] ~ParallelModel() { delete state_; }

  /// Runs `forward` on the rows of the arguments and returns the gathered result. The result is in the memory of the
  /// main device, or of Options::output. Waits for all replicas and for their work on the devices. scatter() says what
  /// `forward` receives, and gather() what the call returns.
  ///
  /// Throws ShapeMismatch if rows of arguments or extents of results disagree. Throws StructureMismatch if the replicas
  /// return different structures. Throws DeviceMismatch if an argument is in a memory that cannot be copied from.
  /// Throws ReplicaError if `forward` throws or its work on a device fails. Throws Timeout if the call takes longer
  /// than Options::deadline. In each case all replicas have ended, and the model can be called again.
  template <class... Args>
  auto operator()(Args&&... args) const {
    return run(detail::WholeBatch(), detail::plain_request, args...);
  }

  /// The same, but runs on every device if no argument is split: `model(on_all(), broadcast(x))`.
  template <class... Args>
  auto operator()(detail::OnAll, Args&&... args) const {
    return run(detail::WholeBatch(), detail::on_all_request, args...);
  }

  /// Queues the shards at their devices and returns a Pending, without waiting:
  ///
  ///     auto pending = model.async(std::move(batch));
  ///     ...                             // the devices' threads work
  ///     auto result = pending.get();    // runs what no device has started, waits, and gathers
  ///
  /// Takes over rvalue arguments. Borrows lvalues and the memory of views and spans: these must stay alive and
  /// unchanged until the call has ended, or until its Pending is destroyed. Starts no thread.
  ///
  /// The call has its number, and so its random numbers, from now on. If `forward` is not const, each replica runs the
  /// calls of a thread in the order in which they were made. Waits for an update() that runs. A later update(), and the
  /// model's destructor, run and wait for all pending calls. Results may be taken after that.
  ///
  /// get() throws what the call throws. async() itself throws what moving the arguments throws, and std::bad_alloc. If
  /// the call changes combined fields and there are other ranks, async() waits until it has ended.
  template <class... Args>
  auto async(Args&&... args) const {
    return post(detail::plain_request, std::forward<Args>(args)...);
  }
  /// The same, but runs on every device if no argument is split.
  template <class... Args>
  auto async(detail::OnAll, Args&&... args) const {
    return post(detail::on_all_request, std::forward<Args>(args)...);
  }

  /// The results of the model for the batches of a loader's epoch, in their order. Needs <fanout/data.hpp>:
  ///
  ///     for (auto&& scores : model.stream(loader.epoch(0))) write(scores);
  ///
  /// The loop has a result while the call of the next batch runs already: it is made by async(), which takes the batch
  /// over. The elements of a tuple or a pair are passed as one argument each. So loader.position() is one batch ahead.
  /// The range owns an epoch that is passed as an rvalue, and borrows an lvalue. It borrows the model. Its destructor
  /// waits for the call that runs, and drops the result.
  ///
  /// The loop throws what the calls throw, and LoadError, each in the place of its result. A loop over the same range
  /// goes on after it. An epoch that has ended gives no more results, unlike a loop over it, which begins it again.
  template <class Batches>
  detail::ResultStream<ParallelModel, Batches> stream(Batches&& batches) const;

  /// `model.into(result)(x)` calls the model, waits, and writes into `result` what the call would return. `result` has
  /// the same structure:
  ///
  /// - for a Tensor<T, R>: a Tensor or a View<T, R> of the same extents, whose memory is written;
  /// - for a std::vector<T>: a std::vector<T> or a std::span<T>;
  /// - for a tuple, dict, map, vector of trees, struct, optional or variant: one of destinations,
  ///   `std::tie(scores, loss)`;
  /// - for anything else: a variable that it is assigned to.
  ///
  /// The results are gathered where the destination is, if that is one memory. Shards write straight into the n-th
  /// Tensor or View of the destination if that is there, and if the n-th output() has its extents. All else is gathered
  /// first and then copied. The returned Into borrows the model. It borrows an lvalue `to`, and owns an rvalue. To
  /// write in place, pass the same rows: `model.into(x)(inout(x))`. Any other argument must not show memory of such a
  /// Tensor or View, which one shard would write while another one reads. Into says what the call throws.
  template <class D>
  Into<ParallelModel, D> into(D&& to) const {
    return {*this, std::forward<D>(to)};
  }

  /// Calls `f(model)`, which may change the original, and returns its result. The next call of each replica uses the
  /// changed model, also if `f` throws. Waits until running and pending calls have ended, also on the devices. New
  /// calls wait until `f` has returned.
  ///
  /// Throws Error if it is called inside the model's own `forward` or update(), since it would wait for itself. A call
  /// of the model inside `f` throws Error, too.
  template <detail::ChangesOriginal<M> F>
  decltype(auto) update(F&& f) {
    static_assert(!detail::ChangesCopy<F, M>,
                  "fanout: the function that update() calls takes a copy of the model, so its changes would be lost; "
                  "take a reference, as in [](Net& net) { ... }");
    if (detail::find_original(detail::current_call(), &state_->original) != nullptr) {
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

  /// Gives rank `root`'s original to all ranks of Options::ranks, which all call this: `model.broadcast_from(0)` before
  /// training. Copies arrays and numbers. Arrays must have the same extents on all ranks. Const fields, PerReplica and
  /// Shared fields stay. Waits like update(), and for all ranks. Does nothing without ranks. Needs <fanout/mpi.hpp>.
  ///
  /// All ranks throw StructureMismatch if extents or roots differ, and Timeout if a rank has not come at
  /// Options::deadline. Throws InvalidArgument if the root is no rank, and Error as update() does.
  void broadcast_from(std::size_t root);

  /// The original. Must not be read while update() runs. If it has combined fields, it must not be read while a call
  /// runs that changes them. The reference is valid until the ParallelModel is destroyed.
  const auto& model() const noexcept requires detail::HasOriginal<M> { return state_->original.model; }
  void model() const noexcept requires(!detail::HasOriginal<M>) {
    static_assert(detail::HasOriginal<M>,
                  "fanout: a model that a factory makes on each device has no original; replica(i).model() is the one "
                  "on the i-th device");
  }

  /// The devices of the model, in the order of its replicas. The first one is the main device.
  const device_set& devices() const noexcept { return state_->replicas.devices(); }

  /// The replica on the i-th device: `replica(i).model()` is the model that `forward` runs on there. Does not wait: it
  /// must not be read while a call with a non-const `forward` or an update() runs. A copy is made or renewed only by
  /// the next call, so until then model() shows the original or the copy of an earlier version. The reference is valid
  /// until the ParallelModel is destroyed. Only for sets of one kind of device. Throws InvalidDeviceId if there is no
  /// such device.
  const auto& replica(std::size_t i) const {
    check_position(i, "replica");
    return state_->replicas[i];
  }

  /// The plan of a call with so many rows: which device gets which rows. Runs nothing. Throws InvalidArgument if the
  /// split policy makes no valid plan.
  Plan plan(std::size_t rows) const { return state_->plan(rows); }

  /// The times of all calls since the model was made, on each device and in all. Needs <fanout/observe.hpp>, and
  /// Options::measure, or a split policy that observes calls; without, throws Error. Thread-safe. A call is counted
  /// when it has ended; an asynchronous one when its result has been taken or dropped.
  Report report() const;

  /// Lets the i-th device take part again, after it was left out for its failures: see Options::retry. Forgets how many
  /// rows fit into its memory: see Options::shrink_on_out_of_memory. Throws InvalidDeviceId if there is no such device.
  void readmit(std::size_t i) {
    check_position(i, "readmit");
    state_->readmit(i);
  }

  /// A copy of the model's split policy, if it is an S, with what it has learnt: `model.split<MeasuredSplit>()`. Throws
  /// InvalidArgument if it is of another type.
  template <class S>
  S split() const {
    return state_->template split_as<S>();
  }

 private:
  template <class Model, class D>
  friend class Into;
  template <class Model>
  friend class detail::StageCalls;

  void check_position(std::size_t i, const char* where) const {
    if (i < devices().size()) return;
    throw InvalidDeviceId(explain({.what = "Invalid device id",
                                   .where = where,
                                   .expected = detail::Text() << "a position below " << devices().size(),
                                   .found = detail::Text() << i}));
  }

  using AllReplicas = typename detail::ReplicasOn<M, device_set>::type;
  using State = detail::ModelState<M, device_set>;
  using Update = detail::ModelUpdate<State>;

  /// A call from beginning to end.
  template <class Batch, class... Args>
  [[gnu::always_inline]] auto run(const Batch& batch, const detail::CallRequest& request, Args&... args) const {
    using Inputs = ShardInputs<const Args&...>;
    using Call = detail::CallOfReplicas<AllReplicas, Inputs>;
    using Sharded = detail::ShardedCall<Call, Inputs>;
    if constexpr (Batch::is_whole && Call::may_need_order()) {
      // Shards that meet need their turns at all replicas at once. With one device, ranks take turns by their order of
      // calls.
      const bool on_caller = state_->settings.ranks != nullptr && devices().size() == 1;
      if (Call::shards_may_meet() && !on_caller) return detail::start_call<M, Inputs>(*state_, request, args...).get();
    }
    detail::EarlyRoom<typename Sharded::Body> room;  // first: it prefetches its cache lines
    [[maybe_unused]] const detail::ThreadHolds<device_set> held;
    const State& state = *state_;
    const detail::DeviceTable& devices = state.replicas.table();
    const bool needs_care = state.needs_care();
    detail::CallMeter meter;
    if (needs_care) [[unlikely]]
      meter.begin(batch.measured({state.measured.get(), devices, detail::type_name_view<M>()}));
    detail::Owned<detail::LimitedPlans> limits;
    auto ranked = batch.template steps<Call>(state);
    try {
      Inputs inputs{state.plan_call(batch.count(detail::count_rows(state.options.axis, args...)), request.on_all),
                    {args...},
                    state.options.axis};
      if (needs_care) [[unlikely]]
        limits = state.template limit<Call>(inputs);
      detail::EnteredModel entered;  // left last
      typename Sharded::Outputs outputs(inputs.plan, state.settings, request, devices.ids(), Call::shards_may_meet());
      batch.enter(entered, state, Call::order());
      outputs.begin(entered.number(), meter.clock());
      ranked.begin(outputs);
      Sharded::run(state.replicas, devices, inputs, outputs, room, ranked,
                   [&] { inputs.plan = state.settings.within(*limits); });
      return Sharded::gather(outputs, ranked);
    } catch (...) {
      ranked.fail();
      throw;
    }
  }

  template <class... Args>
  auto post(const detail::CallRequest& request, Args&&... args) const {
    static_assert(!(detail::refers_to_temporary<std::remove_cvref_t<Args>> || ...),
                  "fanout: an asynchronous call reads its arguments later, when the temporaries in a tuple of rvalue "
                  "references are destroyed; pass a tuple of values, std::tuple{...}");
    return detail::start_call<M, detail::shard_inputs_t<Args...>>(*state_, request, std::forward<Args>(args)...);
  }

  State* state_;
};

// ParallelModel{std::move(other)} moves another ParallelModel, as with std::optional and std::vector. With devices,
// with options or with explicit template arguments it wraps the other one.
template <class M>
ParallelModel(M) -> ParallelModel<M>;
template <class M>
ParallelModel(M, Options) -> ParallelModel<M>;
template <class M, class Source>
ParallelModel(M, Source) -> ParallelModel<M, Source>;
template <class M, class Source>
ParallelModel(M, Source, Options) -> ParallelModel<M, Source>;

}}  // namespace fanout::v0
