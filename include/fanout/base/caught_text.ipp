// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/caught_text.hpp>

#include <cstddef>
#include <exception>

#include <fanout/base/type_info.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void add_caught(Text& text, const std::exception_ptr& exception, std::string_view where) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    text << "\n  Caught " << class_name(e) << where << ": ";
    std::string_view part = e.what();
    for (std::size_t end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
      text << part.substr(0, end + 1) << "  ";
      part.remove_prefix(end + 1);
    }
    text << part;
  } catch (...) {
    text << "\n  Caught an exception that is no std::exception" << where;
  }
}

}}}  // namespace fanout::v0::detail
