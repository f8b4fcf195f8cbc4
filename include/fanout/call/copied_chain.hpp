// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/inline_array.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Copies the chain of call scopes in which an asynchronous call is made, for as long as that call takes. The calls of
/// the original scopes may have ended by then.
template <class Scope>
class CopiedChain {
 public:
  explicit CopiedChain(const Scope* from)
      : scopes_(count(from), [this, &from](std::size_t i) {
          Scope scope = *from;
          scope.caller = scope.caller == nullptr ? nullptr : scopes_.data() + i + 1;
          scope.copied = true;
          from = from->caller;
          return scope;
        }) {}

  const Scope* innermost() const noexcept { return scopes_.size() == 0 ? nullptr : scopes_.data(); }

 private:
  static std::size_t count(const Scope* scope) noexcept {
    std::size_t scopes = 0;
    for (; scope != nullptr; scope = scope->caller) ++scopes;
    return scopes;
  }

  InlineArray<Scope, 1> scopes_;
};

}}}  // namespace fanout::v0::detail
