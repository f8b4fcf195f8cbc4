// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/gather/combine.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/original.hpp>
#include <fanout/model/visit_combined.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/shared_mutex.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 {

// Fields of a model that are combined over the replicas after each call with a non-const `forward`: Mean<T>, Sum<T>,
// Max<T>, Min<T>, First<T>. The result is in the original and in every replica before the call returns. So each call
// begins with the same values everywhere.

namespace detail {

/// A rule that combines the values of several replicas to one of the same type. The type must not hold combined fields.
template <class Rule, class T>
concept CombinesFields =
    GatherableChosen<Rule, T> && !has_combined_fields<T> && std::same_as<typename gather_chosen<Rule, T>::type, T>;

template <class X>
inline constexpr bool cannot_be_combined = false;
template <class Rule, class T>
inline constexpr bool cannot_be_combined<ReducedMember<Rule, T>> = !CombinesFields<Rule, T>;

/// Fields that cannot be combined, and structs that do not show where their combined fields are.
struct NotCombinable {
  static constexpr bool in_const = false;
  static constexpr bool in_own = false;
  template <class Declared>
  static constexpr bool is = cannot_be_combined<Declared> ||
                             (StructLike<Declared> && !HasFields<Declared> && has_combined_fields<Declared>);
};
template <class Finding>
inline constexpr bool fields_can_be_combined = std::is_void_v<Finding>;

template <class M>
constexpr bool check_combined_fields() {
  using finding = find_field_t<NotCombinable, M>;
  static_assert(
      fields_can_be_combined<finding>,
      "fanout: a field of the model cannot be combined after a call (this diagnostic shows its type and place); a "
      "Sum<T>, Max<T>, Min<T> or First<T> takes numbers, arrays and vectors of numbers and structs of these, a Mean<T> "
      "floating and complex ones; a class with base classes or C arrays around it lists its fields (tree/fields.hpp)");
  return fields_can_be_combined<finding>;
}

/// What was added to a sum. From an infinity, or a NaN, no difference tells: then nothing was added if the value is the
/// same, and otherwise it was set anew.
struct Added {
  template <class T>
  constexpr auto operator()(const T& now, const T& before) const -> decltype(now - before) {
    using Part = typename real_of<T>::type;
    if constexpr (!std::is_same_v<Part, T> && requires { T(Part(), Part()); }) {
      return T((*this)(now.real(), before.real()), (*this)(now.imag(), before.imag()));
    } else if constexpr (!std::is_integral_v<T> &&
                         requires { static_cast<decltype(now - before)>(now == before ? T() : now); }) {
      using Difference = decltype(now - before);
      if (is_nan(before - before)) return static_cast<Difference>(now == before ? T() : now);
      return now - before;
    } else {
      return difference_of(now, before);
    }
  }
};

/// The change of a sum since the call began. A value without elements then counts as zero.
template <class T>
T change_of(const T& now, const T& before, const GatherTarget& place, std::size_t replica, const LeafPath& path) {
  if constexpr (requires { before.size(); }) {
    if (before.size() == 0) return now;
  }
  ShardResults<T> both(2, false);
  both.set(0, now);
  both.set(1, before);
  const Plan plan{place.plan[replica], place.plan[replica]};
  try {
    return gather_chosen<rules::Fold<Added>, T>::gather(
        both, {plan, place.devices, place.target, place.axis, place.buffers_held}, path);
  } catch (const ShapeMismatch&) {
    throw ShapeMismatch(explain({.what = "a sum that is a field of the model changed its extents during a call",
                                 .where = to_string(path),
                                 .expected = "those that it had before",
                                 .found = Text() << "others after " << place.describe(replica),
                                 .advice = "give it its extents before the first call, or in update()"}));
  }
}

/// Assigns a value, wherever it is, to the field of a model in this memory.
template <class T>
void store_field(const T& field, const T& value, const backend::Memory& memory) {
  backend::CopyInto into(memory);
  const_cast<T&>(field) = value;
  into.finish();
  backend::wait_for(memory);  // other devices read it next
}

/// Combines a field of the replicas by its rule, and stores the result in the first replica, whose model is in this
/// memory. `fields` has the field of each replica that ran, followed by that of the original. If other processes make
/// the call too, a sum has `its_past` in one of them.
template <class Rule, class T>
void combine_field(const ShardResults<ReducedMember<Rule, T>>& fields, const backend::Memory& memory,
                   const GatherTarget& place, const LeafPath& path, [[maybe_unused]] bool its_past) {
  const std::size_t size = place.plan.size();
  const auto combine_values = [&](const auto& value) {
    ShardResults<T> values(size, false);
    for (std::size_t i = 0; i < size; ++i) values.set(i, value(i));
    // Copied, not moved, so that arrays keep their memory.
    const T result = gather_chosen<Rule, T>::gather(values, place, path);
    store_field(fields[0].value, result, memory);
  };
  if constexpr (std::is_same_v<Rule, rules::Sum>) {
    // Each replica began with the earlier sum, which must count once.
    const T& before = fields[size].value;
    const std::size_t whole = its_past ? 1 : 0;
    const InlineArray<T, 1> changes(size - whole, [&](std::size_t i) {
      return change_of(fields[i + whole].value, before, place, i + whole, path);
    });
    combine_values([&](std::size_t i) -> const T& { return i < whole ? fields[0].value : changes[i - whole]; });
  } else {
    combine_values([&](std::size_t i) -> const T& { return fields[i].value; });
  }
}

/// Copies the combined fields of the first model to all others except model `but`. The models are in these memories.
template <class M>
void spread_fields(const ShardResults<M>& models, const InlineArray<backend::Memory>& memories, std::size_t but = 0) {
  visit_combined(models, LeafPath("model"), [&](const auto& fields, const LeafPath&) {
    for (std::size_t i = 1; i < fields.size(); ++i) {
      if (i != but) store_field(fields[i].value, fields[0].value, memories[i]);
    }
  });
}

/// Calls `f(fold, elements, path)` for each value in the combined fields of the first model, to combine it over
/// processes.
template <class M, class F>
void visit_combined_values(const ShardResults<M>& models, const F& f) {
  visit_combined(models, LeafPath("model"),
                 [&f]<class Rule, class T>(const ShardResults<ReducedMember<Rule, T>>& fields, const LeafPath& path) {
                   auto& value = const_cast<T&>(fields[0].value);
                   visit_reduced_chosen<std::conditional_t<TakesFirst<Rule>, FirstOverRanks, Rule>>(value, value, path,
                                                                                                    f);
                 });
}

/// Exchanges the combined fields of two models in host memory. If it throws for want of memory, it exchanges none. If a
/// field throws when it is moved, the fields before it have been exchanged.
template <class M>
void exchange_fields(const M& one, const M& other) {
  struct Field {
    void* one;
    void* other;
    void (*exchange)(void*, void*);
  };
  ShardResults<M> both(2, false);
  both.set(0, one);
  both.set(1, other);
  std::size_t count = 0;
  visit_combined(both, LeafPath("model"), [&count](const auto&, const LeafPath&) { ++count; });
  InlineArray<Field> fields(count);
  visit_combined(both, LeafPath("model"), [&fields, &count](const auto& found, const LeafPath&) {
    using T = std::remove_cvref_t<decltype(found[0].value)>;
    fields[--count] = {const_cast<T*>(&found[0].value), const_cast<T*>(&found[1].value),
                       [](void* a, void* b) { std::swap(*static_cast<T*>(a), *static_cast<T*>(b)); }};
  });
  for (const Field& field : fields) field.exchange(field.one, field.other);
}

/// One call that may change the combined fields. The caller holds the model exclusively. combine() is called when all
/// shards have ended without an exception. Otherwise the destructor resets the fields of all replicas to those of the
/// original.
template <class AnyReplicas>
class CombiningCall {
 public:
  using M = typename AnyReplicas::model_type;

  CombiningCall(const AnyReplicas& replicas, const Plan& plan) noexcept : replicas_(replicas), plan_(plan) {}
  CombiningCall(const CombiningCall&) = delete;
  CombiningCall& operator=(const CombiningCall&) = delete;
  ~CombiningCall() {
    if (combined_ || epoch_ != fork_epoch()) return;  // in a forked child some replicas are as their threads left them
    for (std::size_t i = 0; i < replicas_.size(); ++i) put_back(i);
  }

  /// Throws ShapeMismatch or StructureMismatch if the fields do not fit together.
  template <class Ranked>
  void combine(const BatchPlace& batch, Ranked& ranked) {
    // A device that ran several shards has one replica, which counts with the rows of all of them.
    InlineArray<std::size_t> order(replicas_.size());
    InlineArray<std::size_t> rows(replicas_.size());
    InlineArray<bool> ran(replicas_.size());
    std::size_t count = 0;
    for (const Shard& shard : plan_) {
      if (copy_of(shard.device) == nullptr) continue;  // on devices of its kind, forward is const
      if (!std::exchange(ran[shard.device], true)) order[count++] = shard.device;
      rows[shard.device] += shard.rows.size();
    }
    combined_ = count == 0;
    if (combined_) return ranked.combine([](const auto&) {});
    Plan plan;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t begin = plan.rows();
      plan.add({.rows = {begin, begin + rows[order[i]]}, .device = order[i]});
    }

    std::size_t idle = 0;
    for (std::size_t i = 0; i < replicas_.size(); ++i) idle += !ran[i] && copy_of(i) != nullptr ? 1U : 0U;
    ShardResults<M> models(count + 1 + idle, false);
    InlineArray<backend::Memory> memories(models.size());
    const auto set_copy = [&](std::size_t at, std::size_t replica) {
      models.set(at, *copy_of(replica));
      memories[at] = memory_of_copy(replica);
    };
    for (std::size_t i = 0; i < count; ++i) set_copy(i, order[i]);
    models.set(count, replicas_.original().model);  // in host memory, as are its combined fields
    std::size_t next = count + 1;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      if (!ran[i] && copy_of(i) != nullptr) set_copy(next++, i);
    }

    if (count > 1 || ranked.has_others()) {
      const GatherTarget place{.plan = plan,
                               .devices = replicas_.devices().ids().data(),
                               .target = {},
                               .axis = 0,
                               .buffers_held = GatherTarget::by_others,
                               .did = "left",
                               .batch = &batch};
      visit_combined(models, LeafPath("model"), [&](const auto& fields, const LeafPath& path) {
        combine_field(fields, memories[0], place, path, ranked.rank() == 0);
      });
      ranked.combine([&models](const auto& f) { visit_combined_values(models, f); });
    }
    // Written only now, when no field can be refused any more. The original comes last: if something fails before that,
    // the fields are reset from it.
    if (memories[0].space == host_memory) {
      spread_fields(models, memories, count);
      exchange_fields(models[0], models[count]);
      combined_ = true;
      put_back(order[0]);
    } else {
      spread_fields(models, memories);
      combined_ = true;
    }
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      replicas_.visit(i, [](const auto& replica) { replica.fields_have_changed(); });
    }
  }

 private:
  M* copy_of(std::size_t i) const {
    M* copy = nullptr;
    replicas_.visit(i, [&copy](const auto& replica) { copy = replica.current_copy(); });
    return copy;
  }

  backend::Memory memory_of_copy(std::size_t i) const {
    backend::Memory memory;
    replicas_.visit(i, [&memory](const auto& replica) { memory = replica.device().memory(); });
    return memory;
  }

  void put_back(std::size_t i) noexcept {
    M* const copy = copy_of(i);
    if (copy == nullptr) return;
    try {
      ShardResults<M> both(2, false);
      both.set(0, replicas_.original().model);
      both.set(1, *copy);
      InlineArray<backend::Memory> memories(2);
      memories[1] = memory_of_copy(i);
      spread_fields(both, memories);
    } catch (...) {  // then the next call makes a new copy
      replicas_.visit(i, [](const auto& replica) { replica.drop_copy(); });
    }
  }

  const AnyReplicas& replicas_;
  const Plan& plan_;
  std::uint32_t epoch_ = fork_epoch();
  bool combined_ = false;
};

}  // namespace detail
}}  // namespace fanout::v0
