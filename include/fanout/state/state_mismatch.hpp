// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// How the tensors of a file differ from the values of a tree.
struct StateDifferences {
  std::vector<std::string> missing = {};     ///< names that the tree has and the file lacks
  std::vector<std::string> unexpected = {};  ///< names that the file has and the tree lacks
  std::vector<std::string> mismatched = {};  ///< names whose shapes or types differ
  std::vector<std::string> texts = {};       ///< what differs in these
  std::string advice = {};

  bool none() const noexcept { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

/// In the words of PyTorch's load_state_dict(), which people search for.
FANOUT_INLINE std::string text_of(const StateDifferences& differences, const std::string& path);

}  // namespace detail

/// A file and the tree that it was to be loaded into do not have the same values. Nothing was loaded. The message lists
/// all differences.
class [[gnu::visibility("default")]] StateMismatch : public Error {
 public:
  StateMismatch(detail::StateDifferences differences, const std::string& path)
      : Error(detail::text_of(differences, path)),
        differences_(std::make_shared<const detail::StateDifferences>(std::move(differences))) {}

  /// Names that the tree has and the file lacks, in the order of the tree.
  const std::vector<std::string>& missing() const noexcept { return differences_->missing; }
  /// Names that the file has and the tree lacks, in the order of the file.
  const std::vector<std::string>& unexpected() const noexcept { return differences_->unexpected; }
  /// Names whose shapes or types differ, in the order of the tree.
  const std::vector<std::string>& mismatched() const noexcept { return differences_->mismatched; }

 private:
  std::shared_ptr<const detail::StateDifferences> differences_;  // shared, so that copies do not throw
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/state_mismatch.ipp>
#endif
