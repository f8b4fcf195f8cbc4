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
#include <fanout/collective/collective.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// What a communicator's group() returns; see Communicator. It borrows the communicator.
template <class Communicator>
class CollectiveGroup {
 public:
  explicit CollectiveGroup(Communicator& communicator)
      : communicator_(communicator), outermost_(communicator.open_ == nullptr) {
    if (outermost_) communicator_.open_ = &calls_;
  }
  CollectiveGroup(const CollectiveGroup&) = delete;
  CollectiveGroup& operator=(const CollectiveGroup&) = delete;

  /// Ends the group now: runs its calls, and throws what they throw.
  void end() {
    if (!std::exchange(outermost_, false)) return;
    communicator_.open_ = nullptr;
    std::vector<Collective> calls = std::move(calls_);
    if (!calls.empty()) communicator_.submit(calls);
  }

  /// The same, unless an exception ends the group: its calls are dropped then.
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

/// The calls of a communicator of type C, made of one function of it: `void run(Collective* calls, std::size_t count)`,
/// which runs calls that start together; `rank()` and `size()` are C's own, too.
///
/// `x` is an array, a number, or a tree of them: gradients as a struct, a tuple or a dict of tensors. All arrays of a
/// tree go at once, as in a group, and the trees of all ranks have the same arrays at the same places. Throws
/// InvalidArgument for a rank that is not there, and for a reduction that the elements do not have.
template <class C>
class CollectiveCalls {
 public:
  CollectiveCalls() noexcept = default;
  CollectiveCalls(const CollectiveCalls&) noexcept {}  // a group belongs to the one that it was opened with
  CollectiveCalls& operator=(const CollectiveCalls&) noexcept { return *this; }

  /// The root's elements become everyone's.
  template <class X>
  void broadcast(X&& x, std::size_t root = 0) {
    call<true>({.kind = Kind::broadcast, .root = root}, x);
  }

  /// The root's elements become what the reduction makes of those of all ranks; the others keep theirs.
  template <class X>
  void reduce(X&& x, std::size_t root = 0, Reduction by = Reduction::sum) {
    call<true>({.kind = Kind::reduce, .reduction = by, .root = root}, x);
  }

  /// The elements of all ranks become what the reduction makes of them.
  template <class X>
  void all_reduce(X&& x, Reduction by = Reduction::sum) {
    call<true>({.kind = Kind::all_reduce, .reduction = by}, x);
  }

  /// `to`, an array, becomes the elements of all ranks' `from`, in their order. Throws ShapeMismatch unless it has
  /// size() times as many.
  template <class From, class To>
  void all_gather(const From& from, To&& to) {
    call_both({.kind = Kind::all_gather}, from, to);
  }

  /// `to`, an array, becomes what the reduction makes of this rank's part of all ranks' `from`. Throws ShapeMismatch
  /// unless that has size() times as many elements.
  template <class From, class To>
  void reduce_scatter(const From& from, To&& to, Reduction by = Reduction::sum) {
    call_both({.kind = Kind::reduce_scatter, .reduction = by}, from, to);
  }

  /// Sends to another rank, which calls recv().
  template <class X>
  void send(const X& x, std::size_t to) {
    call<false>({.kind = Kind::send, .root = to}, x);
  }

  /// Gets what another rank sends.
  template <class X>
  void recv(X&& x, std::size_t from) {
    call<true>({.kind = Kind::recv, .root = from}, x);
  }

  /// Waits for all ranks.
  void barrier() {
    std::vector<Collective> calls(1);
    add(calls);
  }

  /// See Communicator; the guard borrows this.
  [[nodiscard]] CollectiveGroup<C> group() & { return CollectiveGroup<C>(self()); }

 private:
  friend CollectiveGroup<C>;
  using Kind = Collective::Kind;

  C& self() noexcept { return static_cast<C&>(*this); }

  void submit(std::vector<Collective>& calls) { self().run(calls.data(), calls.size()); }

  void add(std::vector<Collective>& calls) {
    if (open_ == nullptr) return submit(calls);
    open_->insert(open_->end(), std::move_iterator(calls.begin()), std::move_iterator(calls.end()));
  }

  template <bool Writes, class X>
  void call(const Collective& like, X& x) {
    std::vector<Collective> calls;
    detail::visit_elements_of(
        x, LeafPath("tree"), [&]<class T>(const detail::Elements<T>& elements, const LeafPath& path) {
          static_assert(
              !Writes || !std::is_const_v<T>,
              "fanout: this collective writes into what it is given, which is const; pass what can be written");
          Collective call = like;
          call.leaf = to_string(path);
          describe(call, elements);
          call.from = elements.data;
          call.from_space = call.to_space = elements.space;
          if constexpr (Writes && !std::is_const_v<T>) call.to = elements.data;
          calls.push_back(std::move(call));
        });
    for (Collective& call : calls) {
      call.leaves = calls.size();
      if (call.leaf == "tree") call.leaf.clear();  // it is all of the tree
    }
    if (!calls.empty()) add(calls);
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
                      "fanout: this collective writes into what it is given, which is const; pass what can be written");
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
        throw ShapeMismatch(explain({.what = "two arrays that do not fit",
                                     .where = to_string(call),
                                     .expected = std::to_string(call.count * self().size()) + " elements, " +
                                                 std::to_string(call.count) + " of each rank",
                                     .found = std::to_string(large)}));
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
                                     .expected = "a rank below " + std::to_string(self().size())}));
    }
    if (call.is_reduction() && !call.type->reduces(call.reduction)) {
      throw InvalidArgument(explain({.what = "elements that cannot be reduced so",
                                     .where = to_string(call),
                                     .expected = "numbers; with an order for min and max; no whole ones for mean"}));
    }
  }

  std::vector<Collective>* open_ = nullptr;  // of the group that is open
};

}}}  // namespace fanout::v0::backend
