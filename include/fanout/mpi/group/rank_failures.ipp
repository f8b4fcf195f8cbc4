// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_failures.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/type_info.hpp>
#include <fanout/call/replica_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::string message_with_type(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& thrown) {
    return thrown.what();
  } catch (const std::exception& thrown) {
    return class_name(thrown) + ": " + thrown.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

bool is_released(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const CommunicatorAbandoned&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string message_as_text(const std::string& name, const std::string& message) {
  std::string text;
  add_field(text, name);
  add_field(text, {});
  add_field(text, message);
  return text;
}

std::string failures_as_text(const std::string& name, const std::exception_ptr& exception) {
  std::string text;
  add_field(text, name);
  try {
    std::rethrow_exception(exception);
  } catch (const ReplicaError& error) {
    add_field(text, error.note());
    for (const Failure& failure : error.failures()) {
      add_field(text, is_released(failure.exception) ? "released" : "");
      add_field(text, std::to_string(failure.shard));
      add_field(text, std::to_string(std::bit_cast<std::uint64_t>(failure.device.kind)));
      add_field(text, std::to_string(failure.device.index));
      add_field(text, std::to_string(failure.device.instance));
      add_field(text, std::to_string(failure.rows.first));
      add_field(text, std::to_string(failure.rows.last));
      add_field(text, message_with_type(failure.exception));
    }
  } catch (...) {
    return message_as_text(name, message_with_type(exception));
  }
  return text;
}

std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

void throw_failures_of_ranks(const std::vector<std::string>& texts, const std::exception_ptr& own, std::size_t shards) {
  std::vector<Failure> failures;
  std::vector<Failure> released;
  std::string list;
  std::string note;
  for (const std::string& text : texts) {
    const std::vector<std::string> fields = fields_of(text);
    if (fields.size() == 3) list += "\n  " + fields[0] + ": " + fields[2];
    if (fields.size() > 3 && note.empty()) note = fields[1];
    for (std::size_t first = 2; first + 7 < fields.size(); first += 8) {
      const std::size_t at = first + 1;
      std::vector<Failure>& of_its_kind = fields[first].empty() ? failures : released;
      of_its_kind.push_back({.shard = std::stoul(fields[at]),
                             .device = {.kind = std::bit_cast<DeviceKind>(std::uint64_t{std::stoull(fields[at + 1])}),
                                        .index = std::stoi(fields[at + 2]),
                                        .instance = std::stoi(fields[at + 3])},
                             .rows = {std::stoul(fields[at + 4]), std::stoul(fields[at + 5])},
                             .exception = std::make_exception_ptr(Error(fields[at + 6])),
                             .process = fields[0]});
    }
  }
  if (failures.empty() && list.empty()) failures.swap(released);
  if (own != nullptr) {
    try {
      std::rethrow_exception(own);
    } catch (const ReplicaError& error) {
      for (const Failure& mine : error.failures()) {
        for (Failure& failure : failures) {
          if (failure.shard == mine.shard) failure.exception = mine.exception;
        }
      }
    }  // any other exception leaves this function
  }
  if (!failures.empty()) throw ReplicaError(std::move(failures), shards, note);
  throw Error("a call of all ranks failed, since ranks failed in it:" + list);
}

}}}  // namespace fanout::v0::detail
