// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a safetensors file, for libFuzzer: see tests/state/fuzz/run. The parser must return a header whose
// tensors fill the file, and which is read as it was after it is written anew, or throw FormatError with a place in the
// file.
//
// The program makes its first inputs itself: `header --seeds FOLDER` writes files there, by the writer of headers.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/state/parse_header.hpp>
#include <fanout/state/write_header.hpp>

namespace {

using fanout::detail::HeaderEntry;
using fanout::detail::StateHeader;

void must(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not so: " << what << std::endl;
  std::abort();
}

void check_filled(const StateHeader& header, std::size_t size) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> places;
  std::set<std::string> names;
  std::uint64_t all = header.data_begin;
  for (const HeaderEntry& entry : header.entries) {
    must(names.insert(entry.name).second, "each name is there once");
    must(fanout::detail::find_invalid_utf8(entry.name) == entry.name.size(), "names are UTF-8");
    must(entry.begin <= entry.end && entry.end <= size - header.data_begin, "tensors are within the file");
    std::uint64_t bytes = 0;
    must(fanout::detail::count_bytes(entry.dtype, entry.shape, bytes), "bytes can be counted");
    must(bytes == entry.end - entry.begin, "a tensor has the bytes of its shape");
    if (bytes != 0) must(places.insert({entry.begin, entry.end}).second, "tensors do not overlap");
    all += bytes;
  }
  must(all == size, "the tensors fill the file");
  std::uint64_t next = 0;
  for (const auto& [begin, end] : places) {
    must(begin == next, "each tensor begins where the one before it ends");
    next = end;
  }
}

void check_written(const StateHeader& header) {
  std::vector<HeaderEntry> entries = header.entries;
  const std::vector<std::size_t> order = fanout::detail::place_entries(entries);
  std::string file = fanout::detail::header_bytes(entries, order);
  must(file.size() % fanout::detail::data_alignment == 0, "elements are aligned");
  if (!order.empty()) file.append(static_cast<std::size_t>(entries[order.back()].end), 'x');
  const StateHeader again = fanout::detail::parse_header(std::as_bytes(std::span(file)), "again");
  must(again.entries.size() == entries.size(), "as many tensors are read again");
  for (std::size_t i = 0; i < order.size(); ++i) {
    const HeaderEntry& written = entries[order[i]];
    must(again.entries[i].name == written.name && again.entries[i].dtype == written.dtype &&
             again.entries[i].shape == written.shape && again.entries[i].begin == written.begin,
         "a tensor is read as it was written");
  }
}

void try_file(std::span<const std::byte> file) {
  try {
    const StateHeader header = fanout::detail::parse_header(file, "file");
    check_filled(header, file.size());
    // A tensor of many bytes can only be in a file that has them, so what is written again is as small.
    check_written(header);
  } catch (const fanout::FormatError& error) {
    must(error.offset() <= file.size(), "the place of an error is in the file");
    must(std::string_view(error.what()).find("expected") != std::string_view::npos, "an error says what was expected");
  }
}

void write_seeds(const std::string& folder) {
  using fanout::detail::Dtype;
  const std::vector<std::vector<HeaderEntry>> trees = {
      {},
      {{.name = "w", .dtype = Dtype::f32, .shape = {2, 3}}},
      {{.name = "layers.0.weight", .dtype = Dtype::f64, .shape = {2}}, {.name = "n\"\\\n", .dtype = Dtype::i64}},
      {{.name = "\xC3\xA4", .dtype = Dtype::boolean, .shape = {3}},
       {.name = "", .dtype = Dtype::f4, .shape = {4}},
       {.name = "empty", .dtype = Dtype::bf16, .shape = {0, 7}},
       {.name = "half", .dtype = Dtype::f16, .shape = {1, 1, 2}}}};
  for (std::size_t i = 0; i < trees.size(); ++i) {
    std::vector<HeaderEntry> entries = trees[i];
    const auto order = fanout::detail::place_entries(entries);
    const std::string header = fanout::detail::header_bytes(entries, order);
    const auto bytes = order.empty() ? std::size_t{0} : static_cast<std::size_t>(entries[order.back()].end);
    const std::string path = folder + "/seed" + std::to_string(i);
    std::ofstream(path + ".file", std::ios::binary) << 'f' << header << std::string(bytes, 'x');
    std::ofstream(path + ".header", std::ios::binary)
        << static_cast<char>(bytes) << header.substr(fanout::detail::header_begin);
  }
  std::ofstream(folder + "/metadata.header", std::ios::binary) << '\0' << R"({"__metadata__":{"a":"b\u20ac"}})";
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count == 3 && std::string_view((*arguments)[1]) == "--seeds") {
    write_seeds((*arguments)[2]);
    std::exit(0);
  }
  return 0;
}

/// The first byte says what the rest is: 'f' for a whole file. Else it is a header, of a file with so many bytes of
/// elements. So most inputs get past the size of the header.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if (data[0] == 'f') {
    try_file(rest);
    return 0;
  }
  std::vector<std::byte> file(fanout::detail::header_begin);
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(rest.size() >> (8 * i) & 0xFFU);
  file.insert(file.end(), rest.begin(), rest.end());
  file.resize(file.size() + data[0]);
  file.shrink_to_fit();  // so that AddressSanitizer sees a read behind its end
  try_file(file);
  return 0;
}
