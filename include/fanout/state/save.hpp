// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/state/byte_order.hpp>
#include <fanout/state/replaced_file.hpp>
#include <fanout/state/state_header.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/state/visit_state.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The leaves of a tree, to be written. Borrows the tree.
class StateWriter {
 public:
  using Leaf = StateLeaf<const std::byte>;

  void add(const Leaf& leaf) {
    entries_.push_back({.name = std::string(leaf.name), .dtype = leaf.dtype, .shape = leaf.shape});
    leaves_.push_back(leaf);
  }

  FANOUT_INLINE void write(const std::string& path);

 private:
  /// Through host memory, part by part.
  FANOUT_INLINE void write_from(const MemorySpace& space, const std::byte* data, std::size_t bytes, ReplacedFile& file);

  std::vector<HeaderEntry> entries_;
  std::vector<Leaf> leaves_;
  std::optional<Storage> part_;
};

}  // namespace detail

/// Writes a tree or a model to a file in the safetensors format, which Python and others read:
///
///     fanout::save("run.safetensors", fanout::dict("model"_k = std::ref(model), "sgd"_k = std::ref(descent)));
///
/// Each array, number and text is a tensor of the file. Its name is the way to it, `model.layers.0.weight`, and is the
/// same for a model and for the ParallelModel around it. A number is a tensor without axes, a text one of bytes. Arrays
/// may be in any memory. Const members of structs, PerReplica and Shared fields are left out.
///
/// All or nothing: if the process is killed, the machine fails or the disk is full, the file is the old one or the new
/// one, whole. Keeps the permissions of an old file. Waits until the file is on its disk, and for the devices whose
/// memory it reads. The tree must not change meanwhile; a ParallelModel must not be updated.
///
/// Throws Error, which names the path and the system's reason, if the file cannot be written. Throws InvalidArgument if
/// two values have one name, which only keys with dots can cause, or if a key is empty or no UTF-8.
template <class X>
void save(const std::string& path, const X& tree) {
  detail::check_byte_order();
  detail::StateWriter writer;
  std::string name;
  detail::visit_state<const std::byte>(tree, name, [&writer](const auto& leaf) { writer.add(leaf); });
  writer.write(path);
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/save.ipp>
#endif
