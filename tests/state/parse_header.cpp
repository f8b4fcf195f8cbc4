// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/state/parse_header.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "state/file_of.hpp"
#include "support/message_of.hpp"

using fanout::FormatError;
using fanout::detail::parse_header;
using fanout::detail::StateHeader;
using fanout_test::bytes_of;
using fanout_test::file_of;
using fanout_test::message_of;
using fanout_test::says;

namespace {

StateHeader header_in(const std::string& file) { return parse_header(bytes_of(file), "run.safetensors"); }

/// Why a file with this header, and so many bytes of elements, is refused.
std::string refused_header(std::string_view header, std::size_t elements = 0) {
  return message_of<FormatError>([&] { header_in(file_of(header, elements)); });
}

std::string tensor_named(const std::string& name, const std::string& shape, int begin, int end,
                         const std::string& dtype = "F32") {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + ',' + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("a header tells the types, shapes and places of tensors, and the metadata") {
  const std::string file =
      file_of(R"({"__metadata__":{"format":"pt","a\n":""}, "b":{"shape":[2,3],"data_offsets":[8,32],"dtype":"F32"},)"
              R"( "number":{"dtype":"F64","shape":[],"data_offsets":[0,8]}, "":{"dtype":"U8","shape":[7,0],)"
              R"("data_offsets":[8,8]}}   )",
              32);
  const StateHeader header = header_in(file);
  REQUIRE(header.entries.size() == 3);
  CHECK(header.entries[0].name == "b");
  CHECK(header.entries[0].dtype == fanout::detail::Dtype::f32);
  CHECK(header.entries[0].shape == std::vector<std::uint64_t>{2, 3});
  CHECK(header.entries[0].begin == 8);
  CHECK(header.entries[0].end == 32);
  CHECK(header.entries[1].name == "number");
  CHECK(header.entries[1].shape.empty());
  CHECK(header.entries[2].name.empty());
  CHECK(header.entries[2].shape == std::vector<std::uint64_t>{7, 0});
  REQUIRE(header.metadata.size() == 2);
  CHECK(header.metadata[0].first == "format");
  CHECK(header.metadata[0].second == "pt");
  CHECK(header.metadata[1].first == "a\n");
  CHECK(header.data_begin == file.size() - 32);
  CHECK(header_in(file_of("{}")).entries.empty());
  CHECK(header_in(file_of(R"({"__metadata__":{}})")).metadata.empty());
}

TEST_CASE("a file that is cut anywhere is refused") {
  const std::string whole = file_of('{' + tensor_named("a", "[2]", 0, 8) + '}', 8);
  CHECK(header_in(whole).entries.size() == 1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(header_in(whole.substr(0, size)), FormatError);
  }
  CHECK(says(message_of<FormatError>([&] { header_in(whole.substr(0, 5)); }), "an invalid safetensors file",
             "run.safetensors, byte 5", "expected eight bytes", "found the end of the file, after 5"));
  CHECK(says(message_of<FormatError>([&] { header_in(whole.substr(0, 20)); }), "byte 20", "a header of", "after 12"));
  CHECK(says(message_of<FormatError>([&] { header_in(whole.substr(0, whole.size() - 1)); }), "byte 9",
             "expected data_offsets [0, 8]", "the end of the file, after 7 of \"a\""));
}

TEST_CASE("what stands behind the last tensor is refused") {
  CHECK(says(refused_header('{' + tensor_named("a", "[2]", 0, 8) + '}', 9), "expected the end of the file",
             "found 1 bytes more"));
  CHECK(says(refused_header("{}", 3), "byte 10", "found 3 bytes more"));
  CHECK(says(refused_header("{} x"), "byte 11", "the end of the header", "found 'x'"));
  CHECK(says(refused_header("{}}"), "byte 10", "found '}'"));
  CHECK(says(refused_header(std::string("{}\0", 3)), "byte 10", "found byte 0"));
}

TEST_CASE("a size of the header that cannot be is refused") {
  std::string file = file_of("{}");
  for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = '\xFF';
  CHECK(says(message_of<FormatError>([&] { header_in(file); }), "byte 0", "at most 100000000 bytes",
             "18446744073709551615"));
  file = file_of("{}");
  file[3] = 6;  // 100,663,298
  CHECK(says(message_of<FormatError>([&] { header_in(file); }), "at most 100000000 bytes", "100663298"));
  file[3] = 5;
  CHECK(says(message_of<FormatError>([&] { header_in(file); }), "a header of 83886082 bytes"));
  // The largest header is read.
  CHECK(header_in(file_of("{}" + std::string(100'000'000 - 2, ' '))).entries.empty());
  CHECK(says(refused_header(""), "a { at the beginning", "found the end"));
  CHECK(says(refused_header(" {}"), "a { at the beginning", "found ' '"));
  CHECK(says(refused_header("[]"), "a { at the beginning", "found '['"));
}

TEST_CASE("metadata may be null, as in the reference implementation") {
  const auto header =
      header_in(file_of(R"({"__metadata__" : null , "a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1));
  CHECK(header.metadata.empty());
  CHECK(header.entries.size() == 1);
  CHECK(says(refused_header(R"({"__metadata__":nul})"), "byte 24", "expected a { or null behind __metadata__"));
  CHECK(says(refused_header(R"({"__metadata__":nulls})"), "a comma or a }"));
}

TEST_CASE("tensors that overlap, or leave a gap, are refused") {
  const auto two = [](const std::string& first, const std::string& second) { return '{' + first + ',' + second + '}'; };
  CHECK(header_in(file_of(two(tensor_named("b", "[1]", 4, 8), tensor_named("a", "[1]", 0, 4)), 8)).entries.size() == 2);
  CHECK(says(refused_header(two(tensor_named("a", "[2]", 0, 8), tensor_named("b", "[2]", 4, 12)), 12),
             "expected data_offsets from 8", "found data_offsets [4, 12] of \"b\""));
  CHECK(says(refused_header(two(tensor_named("a", "[2]", 0, 8), tensor_named("b", "[2]", 12, 20)), 20),
             "expected data_offsets from 8", "found data_offsets [12, 20]"));
  CHECK(says(refused_header('{' + tensor_named("a", "[2]", 4, 12) + '}', 12), "expected data_offsets from 0"));
  CHECK(says(refused_header(two(tensor_named("a", "[2]", 0, 8), tensor_named("b", "[2]", 0, 8)), 8),
             "expected data_offsets from 8"));
  CHECK(says(refused_header(two(tensor_named("a", "[2]", 0, 8), tensor_named("b", "[0]", 4, 4)), 8),
             "expected data_offsets from 8", "[4, 4]"));
}

TEST_CASE("offsets that do not fit the type and the shape are refused") {
  CHECK(says(refused_header('{' + tensor_named("a", "[2]", 0, 4) + '}', 4), "expected 8 bytes of F32[2]",
             "found data_offsets [0, 4] of \"a\""));
  CHECK(says(refused_header('{' + tensor_named("a", "[2]", 8, 0) + '}', 8), "expected 8 bytes", "[8, 0]"));
  CHECK(says(refused_header('{' + tensor_named("a", "[]", 0, 8) + '}', 8), "expected 4 bytes of F32[]"));
  CHECK(header_in(file_of('{' + tensor_named("a", "[3,2]", 0, 3, "F4") + '}', 3)).entries.size() == 1);
  CHECK(says(refused_header('{' + tensor_named("a", "[3]", 0, 1, "F4") + '}', 1), "below 2^64", "shape [3]"));
  CHECK(header_in(file_of('{' + tensor_named("a", "[4]", 0, 3, "F6_E2M3") + '}', 3)).entries.size() == 1);
}

TEST_CASE("bytes that cannot be counted are refused") {
  CHECK(says(refused_header('{' + tensor_named("a", "[4611686018427387904]", 0, 0) + '}'), "below 2^64",
             "shape [4611686018427387904] of \"a\""));
  CHECK(says(refused_header('{' + tensor_named("a", "[4294967296,4294967296]", 0, 0) + '}'), "below 2^64"));
  // As in the reference implementation, a product that overflows is refused even if a 0 follows.
  CHECK(says(refused_header('{' + tensor_named("a", "[4294967296,4294967296,0]", 0, 0) + '}'), "below 2^64"));
  CHECK(header_in(file_of('{' + tensor_named("a", "[0,4294967296,4294967296]", 0, 0) + '}')).entries.size() == 1);
  CHECK(header_in(file_of('{' + tensor_named("a", "[9223372036854775808,0]", 0, 0) + '}')).entries.size() == 1);
  CHECK(says(refused_header('{' + tensor_named("a", "[18446744073709551616]", 0, 0) + '}'), "a number below 2^64"));
}

TEST_CASE("names and fields that stand there twice are refused, also if one is escaped") {
  const std::string a = tensor_named("a", "[0]", 0, 0);
  CHECK(says(refused_header('{' + a + ',' + a + '}'), "byte 62", "each name once", "\"a\" a second time"));
  CHECK(says(refused_header('{' + a + ',' + tensor_named("\\u0061", "[0]", 0, 0) + '}'), "\"a\" a second time"));
  CHECK(says(refused_header(R"({"__metadata__":{},"__metadata__":{}})"), "one __metadata__", "a second one"));
  CHECK(says(refused_header(R"({"__metadata__":{"x":"1","y":"","x":"2"}})"), "byte 40", "\"x\" a second time"));
  CHECK(says(refused_header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"), "dtype once"));
  CHECK(says(refused_header(R"({"a":{"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]}})"), "shape once"));
  CHECK(says(refused_header(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"data_offsets":[0,0]}})"),
             "data_offsets once"));
}

TEST_CASE("what is no header of the format is refused where it stands") {
  for (const char* const text : {"{",
                                 "{,}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1}",
                                 "{\"a\":null}",
                                 "{\"a\":[]}",
                                 "{\"a\":\"b\"}",
                                 "{\"a\":{}}",
                                 R"({"a":{"dtype":"U8","shape":[0]}})",
                                 R"({"a":{"dtype":"U8","data_offsets":[0,0]}})",
                                 R"({"a":{"shape":[0],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[]}})",
                                 R"({"a":{"dtype":"U8","shape":0,"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0,],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":["0"],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0.0],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"u8","shape":[0],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":0}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],}})",
                                 R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})",
                                 R"({"__metadata__":[]})",
                                 R"({"__metadata__":{"a":1}})",
                                 R"({"__metadata__":{"a":{"b":"c"}}})",
                                 R"({"__metadata__":{"a":"b",}})",
                                 R"({"__metadata__":"a"})"}) {
    CAPTURE(text);
    const std::string message = refused_header(text);
    CHECK(says(message, "run.safetensors, byte ", "expected", "found"));
  }
  CHECK(says(refused_header(R"({"a":{"dtype":"F31","shape":[0],"data_offsets":[0,0]}})"), "byte 22",
             "a type of the format", "found \"F31\""));
  CHECK(says(refused_header(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":0}})"), "byte 60",
             "found \"more\""));
}

TEST_CASE("deep nesting is refused at its first level, without recursion") {
  CHECK(says(refused_header("{\"a\":" + std::string(1'000'000, '{')), "byte 14", "found '{'"));
  CHECK(says(refused_header(R"({"a":{"dtype":"U8","shape":)" + std::string(1'000'000, '[')), "byte 36", "found '['"));
}

TEST_CASE("a header that is not UTF-8 is refused") {
  CHECK(says(refused_header("{\"a\xFF\":{}}"), "byte 11", "UTF-8", "byte 255"));
  CHECK(says(refused_header("{}\xC3"), "byte 10", "UTF-8", "byte 195"));
}

TEST_CASE("a format error knows the byte at which the file is wrong") {
  try {
    header_in(file_of("{\"a\"}"));
    FAIL("nothing was thrown");
  } catch (const FormatError& error) {
    CHECK(error.offset() == 12);
  }
}
