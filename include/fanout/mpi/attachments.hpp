// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fanout/base/type_info.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a header that Ranks does not know keeps with one.
class Attachment {
 public:
  Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  virtual ~Attachment() = default;
};

/// One attachment of each type, made at first use. Thread-safe.
class Attachments {
 public:
  /// Makes `T(arguments...)` if there is none.
  template <class T, class... Arguments>
  T& get(const Arguments&... arguments) const {
    const std::lock_guard looking(mutex_);
    for (const auto& [type, attachment] : all_) {
      if (same_type(type, type_id<T>())) return static_cast<T&>(*attachment);
    }
    return static_cast<T&>(*all_.emplace_back(type_id<T>(), std::make_unique<T>(arguments...)).second);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<const void*, std::unique_ptr<Attachment>>> all_;
};

}}}  // namespace fanout::v0::detail
