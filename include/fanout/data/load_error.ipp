// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/data/load_error.hpp>

#include <fanout/base/type_info.hpp>

namespace fanout { inline namespace v0 {

std::string LoadError::text(const Place& place, const std::exception_ptr& original) {
  std::string text = "Caught ";
  std::string message = "no std::exception";
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& e) {
    text += detail::class_name(e);
    message = e.what();
  } catch (...) {
    text += "an exception";
  }
  text += " in a Loader, epoch " + std::to_string(place.epoch) + ", batch " + std::to_string(place.batch) + ", rows " +
          to_string(place.rows) + " of the order";
  if (place.sample) text += ", sample " + std::to_string(*place.sample);
  return text + ". Original message: " + message;
}

}}  // namespace fanout::v0
