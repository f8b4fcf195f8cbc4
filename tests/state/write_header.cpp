// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/utf8.hpp>
#include <fanout/state/write_header.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fanout/state/parse_header.hpp>

#include "state/file_of.hpp"
#include "support/message_of.hpp"

using fanout::InvalidArgument;
using fanout::detail::Dtype;
using fanout::detail::header_bytes;
using fanout::detail::HeaderEntry;
using fanout::detail::place_entries;
using fanout_test::message_of;
using fanout_test::says;

namespace {

HeaderEntry named(std::string name, Dtype dtype, std::vector<std::uint64_t> shape) {
  return {.name = std::move(name), .dtype = dtype, .shape = std::move(shape)};
}

/// A text of up to 20 code points, many of which have to be escaped.
std::string some_text(std::mt19937& random) {
  std::string text;
  for (std::size_t i = random() % 20; i > 0; --i) {
    constexpr char32_t below[] = {0x20, 0x80, 0x800, 0xD800, 0x110000};
    const std::size_t kind = random() % 6;
    if (kind == 5) {
      text += "\"\\/"[random() % 3];
    } else {
      const auto point = static_cast<char32_t>(random() % below[kind]);
      fanout::detail::append_utf8(text, point >= 0xD800 && point < 0xE000 ? U'x' : point);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a header is written as the reference implementation writes it, but for its padding") {
  std::vector entries{named("w", Dtype::f32, {2, 3}), named("n\"\\\n", Dtype::i64, {})};
  const std::string bytes = header_bytes(entries, place_entries(entries));
  const std::string text = R"({"n\"\\\u000a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                           R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}})";
  CHECK(bytes.substr(8, text.size()) == text);
  CHECK(bytes.find_first_not_of(' ', 8 + text.size()) == std::string::npos);
  CHECK(bytes.size() % 64 == 0);
  CHECK(bytes.size() < 8 + text.size() + 64);
  CHECK(bytes.substr(0, 8) == std::string("\x78\0\0\0\0\0\0\0", 8));
}

TEST_CASE("elements stand aligned to their size, and otherwise in the order of their names") {
  std::vector entries{named("g", Dtype::f32, {0, 4}), named("a", Dtype::u8, {3}),  named("b", Dtype::f64, {1}),
                      named("c", Dtype::boolean, {}), named("d", Dtype::f16, {3}), named("e", Dtype::i64, {2}),
                      named("f", Dtype::f32, {5})};
  std::string order;
  std::uint64_t next = 0;
  for (const std::size_t i : place_entries(entries)) {
    order += entries[i].name;
    CHECK(entries[i].begin == next);
    CHECK(entries[i].begin % fanout::detail::size_of(entries[i].dtype) == 0);
    next = entries[i].end;
  }
  CHECK(order == "befgdac");
  CHECK(next == 8 + 16 + 20 + 6 + 3 + 1);
}

TEST_CASE("a header that was written is read as it was, whatever the names") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<HeaderEntry> entries;
    for (std::size_t i = random() % 12; i > 0; --i) {
      HeaderEntry entry = named(some_text(random) + std::to_string(i),
                                static_cast<Dtype>(random() % fanout::detail::dtype_rows.size()), {});
      for (std::size_t axes = random() % 5; axes > 0; --axes) {
        entry.shape.push_back(random() % 4 * 4);  // so that also F6 ends at a byte
      }
      if (entry.shape.empty() && fanout::detail::size_of(entry.dtype) == 0) entry.dtype = Dtype::f32;
      entries.push_back(std::move(entry));
    }
    const std::vector<std::size_t> order = place_entries(entries);
    const auto elements = order.empty() ? std::size_t{0} : static_cast<std::size_t>(entries[order.back()].end);
    const std::string file = header_bytes(entries, order) + std::string(elements, 'x');
    const auto header = fanout::detail::parse_header(fanout_test::bytes_of(file), "file");
    CHECK(header.data_begin == file.size() - elements);
    REQUIRE(header.entries.size() == entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const HeaderEntry& written = entries[order[i]];
      CHECK(header.entries[i].name == written.name);
      CHECK(header.entries[i].dtype == written.dtype);
      CHECK(header.entries[i].shape == written.shape);
      CHECK(header.entries[i].begin == written.begin);
      CHECK(header.entries[i].end == written.end);
    }
  }
}

TEST_CASE("names that a file cannot have are refused before anything is written") {
  const auto refused = [](std::vector<HeaderEntry> entries) {
    return message_of<InvalidArgument>([&] { place_entries(entries); });
  };
  CHECK(says(refused({named("x.y", Dtype::u8, {}), named("z", Dtype::u8, {}), named("x.y", Dtype::f32, {})}),
             "one name", "x.y", "without dots"));
  CHECK(says(refused({named("__metadata__", Dtype::u8, {})}), "cannot have", "__metadata__"));
  CHECK(says(refused({named("\xFF", Dtype::u8, {})}), "cannot have", "UTF-8"));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(says(refused({named("a", Dtype::f32, {most / 2})}), "cannot be counted", "a"));
  CHECK(says(refused({named("a", Dtype::u8, {most}), named("b", Dtype::u8, {most})}), "cannot be counted", "b"));
}

TEST_CASE("a header that is larger than the format allows is refused") {
  std::vector entries{named(std::string(100'000'000, 'a'), Dtype::u8, {})};
  const std::vector<std::size_t> order = place_entries(entries);
  CHECK(says(message_of<InvalidArgument>([&] { header_bytes(entries, order); }), "too many values",
             "at most 100000000 bytes"));
}
