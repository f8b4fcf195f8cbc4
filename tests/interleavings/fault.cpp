// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fault.hpp"

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

namespace interleavings {

namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 10> operations{{
    {".load(", Operation::load},
    {".store(", Operation::store},
    {".exchange(", Operation::exchange},
    {".fetch_add(", Operation::fetch},
    {".fetch_sub(", Operation::fetch},
    {".fetch_and(", Operation::fetch},
    {".compare_exchange_", Operation::compare_exchange},
    {"park_until(", Operation::park},
    {"unpark_all(", Operation::unpark},
    {"park(", Operation::park},
}};

}  // namespace

std::string Fault::find(const std::string& include) {
  std::size_t last = std::string::npos;
  for (const auto& [name, what] : operations) {
    const std::size_t at = text.rfind(name);
    if (at == std::string::npos || (last != std::string::npos && at < last)) continue;
    last = at;
    operation = what;
  }
  if (last == std::string::npos) return "'" + text + "' names no operation";
  const std::string named = header;
  if (!std::ifstream(include + "/fanout/" + named)) return "there is no header " + named;
  int found = 0;
  for (const std::string& name : {named, named.substr(0, named.rfind('.')) + ".ipp"}) {
    std::ifstream file(include + "/fanout/" + name);
    unsigned number = 0;
    for (std::string read; std::getline(file, read);) {
      ++number;
      if (read.find(text) == std::string::npos || ++found != which) continue;
      header = name;
      line = number;
    }
  }
  if (found == of && which <= of) return "";
  return "'" + text + "' stands on " + std::to_string(found) + " lines of " + named + ", not " + std::to_string(of);
}

bool Fault::hits(Operation what, const Place& place) const {
  return place.line() == line && what == operation && std::string_view(place.file_name()).ends_with(header);
}

const char* name_of(Fault::How how) {
  switch (how) {
    case Fault::How::acq_rel:
      return "without seq_cst";
    case Fault::How::relaxed:
      return "relaxed";
    case Fault::How::skipped:
      return "skipped";
    case Fault::How::torn:
      return "torn";
    case Fault::How::late:
      return "late";
    case Fault::How::unchecked:
      return "unchecked";
  }
  return "";
}

}  // namespace interleavings
