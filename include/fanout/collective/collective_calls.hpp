// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_buckets.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// The guard of a communicator's group(); see Communicator. Borrows the communicator.
template <class Communicator>
class CollectiveGroup {
 public:
  explicit CollectiveGroup(Communicator& communicator)
      : communicator_(communicator), outermost_(communicator.open_ == nullptr) {
    if (outermost_) communicator_.open_ = &calls_;
  }
  CollectiveGroup(const CollectiveGroup&) = delete;
  CollectiveGroup& operator=(const CollectiveGroup&) = delete;

  /// Ends the group now: runs its calls, and throws what they throw. A second end() does nothing.
  void end() {
    if (!std::exchange(outermost_, false)) return;
    communicator_.open_ = nullptr;
    std::vector<Collective> calls = std::move(calls_);
    if (!calls.empty()) communicator_.submit(calls);
  }

  /// Ends the group like end(). If an exception ends it, drops its calls.
  ~CollectiveGroup() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
      end();
    } else if (outermost_) {
      communicator_.open_ = nullptr;
    }
  }

 private:
  Communicator& communicator_;
  std::vector<Collective> calls_;
  int exceptions_ = std::uncaught_exceptions();
  bool outermost_;
};

/// The functions of a communicator of type C, built on one function of C:
/// `void run(Collective* calls, std::size_t count)` runs calls that start together. C also has `rank()` and `size()`.
///
/// `x` is an array, a number, or a tree of them, for example gradients as a struct, a tuple or a dict of tensors.
/// Shapes do not change: on all ranks, the trees must have the same arrays with the same extents at the same places.
/// All arrays of a tree go at once, as in a group. A tree without arrays is a call, too. In a group, a call only
/// records the arrays and returns. Throws InvalidArgument for an invalid rank, or if the elements do not have the
/// reduction; and what run() throws.
template <class C>
class CollectiveCalls {
 public:
  CollectiveCalls() noexcept = default;
  CollectiveCalls(const CollectiveCalls&) noexcept {}  // a group belongs to the communicator that opened it
  CollectiveCalls& operator=(const CollectiveCalls&) noexcept { return *this; }

  /// All ranks get the root's elements: x [extents...] on each rank.
  template <class X>
  void broadcast(X&& x, std::size_t root = 0) {
    call<true>({.kind = Kind::broadcast, .root = root}, x);
  }

  /// The root gets the reduction of all ranks' elements, in place: x [extents...] on each rank. The other ranks keep
  /// theirs.
  template <class X>
  void reduce(X&& x, std::size_t root = 0, Reduction by = Reduction::sum) {
    call<true>({.kind = Kind::reduce, .reduction = by, .root = root}, x);
  }

  /// All ranks get the reduction of all ranks' elements, in place: x [extents...] on each rank.
  template <class X>
  void all_reduce(X&& x, Reduction by = Reduction::sum) {
    call<true>({.kind = Kind::all_reduce, .reduction = by}, x);
  }

  /// `to` gets the elements of all ranks' `from`, in the order of the ranks: from [n, ...] on each rank, to [size() *
  /// n, ...]. Both are arrays of one element type. Throws ShapeMismatch unless `to` has size() times the elements of
  /// `from`.
  template <class From, class To>
  void all_gather(const From& from, To&& to) {
    call_both({.kind = Kind::all_gather}, from, to);
  }

  /// `to` gets the reduction of all ranks' parts for this rank: from [size() * n, ...], to [n, ...]. Part r of `from`
  /// is for rank r. Both are arrays of one element type. Throws ShapeMismatch unless `from` has size() times the
  /// elements of `to`.
  template <class From, class To>
  void reduce_scatter(const From& from, To&& to, Reduction by = Reduction::sum) {
    call_both({.kind = Kind::reduce_scatter, .reduction = by}, from, to);
  }

  /// Sends x to rank `to`, which must call recv() with the same extents. The two wait for each other: see Communicator.
  template <class X>
  void send(const X& x, std::size_t to) {
    call<false>({.kind = Kind::send, .root = to}, x);
  }

  /// Receives into x what rank `from` sends. The two wait for each other: see Communicator.
  template <class X>
  void recv(X&& x, std::size_t from) {
    call<true>({.kind = Kind::recv, .root = from}, x);
  }

  /// Waits until all ranks have called this.
  void barrier() {
    std::vector<Collective> calls(1);
    add(calls);
  }

  /// Opens a group: see Communicator. The guard borrows this communicator.
  [[nodiscard]] CollectiveGroup<C> group() & { return CollectiveGroup<C>(self()); }
  CollectiveGroup<C> group() && {
    static_assert(
        sizeof(C) == 0,
        "fanout: a group of a temporary communicator would dangle; give the communicator a name: `auto comm = "
        "ctx.communicator(); auto group = comm.group();`");
    return CollectiveGroup<C>(self());
  }

  /// Makes buckets for all_reduce_async(), whose arrays are reduced while this rank goes on: see CollectiveBuckets.
  /// They borrow this communicator. Throws Error if it has some already.
  [[nodiscard]] CollectiveBuckets<C> buckets(const BucketSizes& sizes = {}) & {
    return CollectiveBuckets<C>(self(), sizes);
  }
  CollectiveBuckets<C> buckets(const BucketSizes& sizes = {}) && {
    static_assert(
        sizeof(C) == 0,
        "fanout: buckets of a temporary communicator would dangle; give the communicator a name: `auto comm = "
        "ctx.communicator(); auto buckets = comm.buckets();`");
    return CollectiveBuckets<C>(self(), sizes);
  }

 private:
  friend CollectiveGroup<C>;
  friend CollectiveBuckets<C>;
  using Kind = Collective::Kind;

  C& self() noexcept { return static_cast<C&>(*this); }

  void submit(std::vector<Collective>& calls) {
    if (buckets_ != nullptr) buckets_->wait();  // the ranks' calls keep their order
    self().run(calls.data(), calls.size());
  }

  void add(std::vector<Collective>& calls) {
    if (open_ == nullptr) return submit(calls);
    open_->insert(open_->end(), std::move_iterator(calls.begin()), std::move_iterator(calls.end()));
  }

  template <bool Writes, class X>
  void call(const Collective& like, X& x) {
    std::vector<Collective> calls = calls_for<Writes>(like, x);
    add(calls);
  }

  /// A call like this one for each array of the tree, or one of no elements if it has none.
  template <bool Writes, class X>
  std::vector<Collective> calls_for(const Collective& like, X& x) {
    std::vector<Collective> calls;
    detail::visit_elements_of(
        x, LeafPath("tree"), [&]<class T>(const detail::Elements<T>& elements, const LeafPath& path) {
          static_assert(
              !Writes || !std::is_const_v<T>,
              "fanout: this collective writes into its argument, but the argument is const; pass a mutable one");
          Collective call = like;
          call.leaf = to_string(path);
          describe(call, elements);
          call.from = elements.data;
          call.from_space = call.to_space = elements.space;
          if constexpr (Writes && !std::is_const_v<T>) call.to = elements.data;
          calls.push_back(std::move(call));
        });
    const std::size_t leaves = calls.size();
    if (leaves == 0) {  // still a call, so that no later one meets that of a rank whose tree has arrays
      calls.push_back(like);
      describe(calls[0], detail::Elements<const float>());
    }
    for (Collective& call : calls) {
      call.leaves = leaves;
      if (call.leaf == "tree") call.leaf.clear();  // it is the whole tree
    }
    return calls;
  }

  template <class From, class To>
  void call_both(const Collective& like, const From& from, To& to) {
    static_assert(detail::OneArray<const From> && detail::OneArray<To>,
                  "fanout: all_gather and reduce_scatter take two arrays; for those of a tree, call them in a group");
    if constexpr (detail::OneArray<const From> && detail::OneArray<To>) {
      using Read = std::remove_const_t<detail::element_of_t<const From>>;
      std::vector<Collective> calls(1, like);
      Collective& call = calls[0];
      const bool gathers = like.kind == Kind::all_gather;
      std::size_t large = 0;
      detail::visit_elements_of(from, LeafPath(""), [&]<class T>(const detail::Elements<T>& elements, const LeafPath&) {
        if (gathers) describe(call, elements);
        call.from = elements.data;
        call.from_space = elements.space;
        large = elements.count;
      });
      detail::visit_elements_of(to, LeafPath(""), [&]<class T>(const detail::Elements<T>& elements, const LeafPath&) {
        static_assert(!std::is_const_v<T>,
                      "fanout: this collective writes into its argument, but the argument is const; pass a mutable "
                      "one");
        static_assert(std::is_same_v<std::remove_const_t<T>, Read>,
                      "fanout: all_gather and reduce_scatter take two arrays of one element type");
        if (gathers) {
          large = elements.count;
        } else {
          describe(call, elements);
        }
        if constexpr (!std::is_const_v<T>) call.to = elements.data;
        call.to_space = elements.space;
      });
      if (large != call.count * self().size()) {
        throw ShapeMismatch(explain(
            {.what = "the larger of two arrays has the wrong size",
             .where = to_string(call),
             .expected = detail::Text() << call.count * self().size() << " elements, " << call.count << " of each rank",
             .found = detail::Text() << large}));
      }
      add(calls);
    }
  }

  template <class T>
  void describe(Collective& call, const detail::Elements<T>& elements) {
    call.type = &detail::element_type<std::remove_const_t<T>>;
    call.count = elements.count;
    call.extents = elements.extents;
    if (call.root >= self().size()) {
      throw InvalidArgument(explain({.what = "no such rank",
                                     .where = to_string(call),
                                     .expected = detail::Text() << "a rank below " << self().size()}));
    }
    if (call.is_reduction() && !call.type->reduces(call.reduction)) {
      throw InvalidArgument(explain({.what = "these elements have no such reduction",
                                     .where = to_string(call),
                                     .expected = "numbers; ordered ones for min and max, no integers for mean"}));
    }
  }

  std::vector<Collective>* open_ = nullptr;  // the calls of the open group, or null
  CollectiveBuckets<C>* buckets_ = nullptr;  // null if there are none
};

}}}  // namespace fanout::v0::backend
