// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/view.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/state/state_file.hpp>
#include <fanout/state/state_header.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/state/state_mismatch.hpp>
#include <fanout/state/strip_prefix.hpp>
#include <fanout/state/visit_state.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A text is a value as a whole: one of any length may take its place.
template <class Byte>
bool has_shape_for(const StateLeaf<Byte>& leaf, const HeaderEntry& entry) {
  return leaf.is_text ? entry.shape.size() == 1 : entry.shape == leaf.shape;
}
template <class Byte>
bool fits(const StateLeaf<Byte>& leaf, const HeaderEntry& entry) {
  return entry.dtype == leaf.dtype && has_shape_for(leaf, entry);
}

/// Compares the leaves of a tree with the tensors of a file, before anything is written.
class StateComparison {
 public:
  explicit StateComparison(const StateFile& file) : file_(file), is_used_(file.size()) {}

  FANOUT_INLINE void add(const StateLeaf<const std::byte>& leaf);

  /// Throws StateMismatch if anything differs.
  FANOUT_INLINE void check();

 private:
  FANOUT_INLINE void compare(const StateLeaf<const std::byte>& leaf, const HeaderEntry& entry);

  /// Recognises that all missing names are there, behind a prefix.
  FANOUT_INLINE void advise();

  const StateFile& file_;
  std::vector<bool> is_used_;
  StateDifferences differences_;
};

/// Copies tensors of a file into the leaves of a tree.
class StateReader {
 public:
  explicit StateReader(const StateFile& file) : file_(file) {}

  FANOUT_INLINE void read(const StateLeaf<std::byte>& leaf);

  /// Waits until all is there.
  void finish() const {
    for (const MemorySpace& space : spaces_) backend::wait_for(backend::memory_of(space));
  }

 private:
  const StateFile& file_;
  std::vector<MemorySpace> spaces_;
};

template <class X>
void load_from(const StateFile& file, X& tree) {
  StateComparison comparison(file);
  std::string name;
  visit_state<const std::byte>(std::as_const(tree), name, [&comparison](const auto& leaf) { comparison.add(leaf); });
  comparison.check();
  StateReader reader(file);
  visit_state<std::byte>(tree, name, [&reader](const auto& leaf) { reader.read(leaf); });
  reader.finish();
}

/// True if a temporary of this type would take what is loaded with it when it goes. Says so of each struct: whoever
/// means the views in it gives it a name.
struct OwnsState;
template <class X>
concept BorrowsState = RefersToTree<X> || BorrowsArray<X> || SpanNode<X> || shows_elements<X> || is_no_model_value<X> ||
    requires(const X& x) {
  x.strides();
};
template <class X>
inline constexpr bool owns_state = !BorrowsState<X>;
template <class X>
  requires(!BorrowsState<X> && !owns_elements<X> && !StructNode<X> && child_kind<X> != ChildKind::none)
inline constexpr bool owns_state<X> = !all_children<OwnsState, X>;
struct OwnsState {
  template <class Child>
  static constexpr bool is = std::is_reference_v<Child> || !owns_state<std::remove_cv_t<Child>>;
};

}  // namespace detail

/// Reads a safetensors file into a tree or a model that has the same structure:
///
///     fanout::load("run.safetensors", fanout::dict("model"_k = std::ref(model), "sgd"_k = std::ref(descent)));
///
/// The tree says what is loaded and where: arrays keep their memory, on any device. A ParallelModel is updated, so its
/// replicas follow. See save() for the names. Each name of the tree must be in the file and the other way round, with
/// the same type and shape; only texts may have any length. Vectors do not grow, and optionals do not change: `load<T>`
/// makes a tree that fits. Nothing is converted.
///
/// Copies each array once, from the mapped file. Waits until all is there. The whole of a Slice is not copied: it is
/// then in the mapped file, from which each device copies its part, and what update() writes is in memory. So the file
/// must not be changed in place as long as the model is there; save() may replace it. For other trees, it must not
/// become shorter meanwhile. The tree must not be used by another thread, but for ParallelModels, whose running calls
/// are waited for.
///
/// Throws StateMismatch if anything differs, and lists all of it. Throws InvalidArgument if two values have one name or
/// a key is empty. Throws FormatError if the file is broken. Throws Error if it cannot be read. In each case nothing
/// was written. Throws DeviceMismatch if an array is in a memory that cannot be copied to, DeviceError if a device
/// fails, and Error if the system maps no more; then the tree may be loaded in parts.
template <class X>
void load(const std::string& path, X&& tree, const detail::StripPrefix& strip = {}) {
  static_assert(std::is_lvalue_reference_v<X> || !detail::owns_state<std::remove_cv_t<X>>,
                "fanout: load() would write into a temporary that is gone afterwards; pass the object itself, or "
                "std::ref(object) in a dict");
  detail::load_from(detail::StateFile(path, strip), tree);
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/load.ipp>
#endif
