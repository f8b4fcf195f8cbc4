// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/inline_array.hpp>

using fanout::detail::InlineArray;

namespace {

static_assert(!std::is_copy_constructible_v<InlineArray<int>>);
static_assert(!std::is_move_constructible_v<InlineArray<int>>, "the objects never move");
static_assert(!std::is_copy_assignable_v<InlineArray<int>>);
static_assert(!std::is_convertible_v<std::size_t, InlineArray<int>>);

template <class T, std::size_t N>
bool stands_inside(const InlineArray<T, N>& array) {
  const auto* object = reinterpret_cast<const std::byte*>(&array);
  const auto* first = reinterpret_cast<const std::byte*>(array.data());
  return std::less_equal<>()(object, first) && std::less<>()(first, object + sizeof(array));
}

/// Notes when its objects come and go; can be neither copied nor moved.
struct Traced {
  Traced(std::vector<std::string>& notes, std::size_t number) : log(notes), id(number) {
    if (id == 3) throw std::runtime_error("the third");
    log.push_back("+" + std::to_string(id));
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  ~Traced() { log.push_back("-" + std::to_string(id)); }

  std::vector<std::string>& log;
  std::size_t id;
};

struct alignas(128) Wide {
  int value = 7;
};

}  // namespace

TEST_CASE("up to N objects are stored inline, and more on the heap") {
  for (const std::size_t size : {0U, 1U, 4U}) {
    const InlineArray<int, 4> array(size);
    CHECK(array.size() == size);
    CHECK(stands_inside(array));
  }
  const InlineArray<int, 4> more(5);
  CHECK(more.size() == 5);
  CHECK_FALSE(stands_inside(more));
}

TEST_CASE("objects are value-initialised, or what make returns for their place") {
  for (const std::size_t size : {3U, 40U}) {
    const InlineArray<int> zeros(size);
    CHECK(std::accumulate(zeros.begin(), zeros.end(), 0) == 0);

    InlineArray<std::string> texts(size, [](std::size_t i) { return std::to_string(i); });
    for (std::size_t i = 0; i < size; ++i) CHECK(texts[i] == std::to_string(i));
    texts[1] += "!";
    CHECK(std::as_const(texts)[1] == "1!");
    CHECK(texts.end() - texts.begin() == static_cast<std::ptrdiff_t>(size));
    CHECK(texts.data() == &texts[0]);
  }
}

TEST_CASE("objects that are not set have room, inline and on the heap, and the first pointer is null") {
  for (const std::size_t size : {1U, 3U, 9U}) {
    auto pointers = InlineArray<const int*>::unset(size);
    REQUIRE(pointers.size() == size);
    if (size == 1) CHECK(pointers[0] == nullptr);
    for (const int*& pointer : pointers) pointer = nullptr;
    auto numbers = InlineArray<int>::unset(size);
    for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<int>(i);
    CHECK(numbers[size - 1] == static_cast<int>(size) - 1);
  }
}

TEST_CASE("objects that cannot be copied or moved are built in place") {
  for (const std::size_t size : {2U, 20U}) {
    InlineArray<std::atomic<int>> counters(size, [](std::size_t i) { return std::atomic<int>(static_cast<int>(i)); });
    counters[1].fetch_add(10);
    CHECK(counters[1].load() == 11);

    InlineArray<std::mutex> locks(size);
    CHECK(locks[0].try_lock());
    locks[0].unlock();
  }
}

TEST_CASE("objects go in the reverse order of their coming") {
  std::vector<std::string> log;
  {
    const InlineArray<Traced, 2> array(3, [&](std::size_t i) { return Traced(log, i); });
  }
  CHECK(log == std::vector<std::string>{"+0", "+1", "+2", "-2", "-1", "-0"});
}

TEST_CASE("objects are destroyed if a later one throws, inline and on the heap") {
  std::vector<std::string> log;
  const auto make = [&](std::size_t i) { return Traced(log, i); };
  CHECK_THROWS_WITH_AS((InlineArray<Traced, 8>(8, make)), "the third", std::runtime_error);
  CHECK(log == std::vector<std::string>{"+0", "+1", "+2", "-2", "-1", "-0"});
  log.clear();
  CHECK_THROWS_WITH_AS((InlineArray<Traced, 2>(8, make)), "the third", std::runtime_error);
  CHECK(log == std::vector<std::string>{"+0", "+1", "+2", "-2", "-1", "-0"});
}

TEST_CASE("objects are aligned as their type asks, in place and on the heap") {
  for (const std::size_t size : {2U, 9U}) {
    const InlineArray<Wide, 4> array(size);
    for (const Wide& object : array) {
      CHECK(reinterpret_cast<std::uintptr_t>(&object) % alignof(Wide) == 0);
      CHECK(object.value == 7);
    }
  }
}

TEST_CASE("objects are destroyed with the array") {
  const auto shared = std::make_shared<int>(1);
  for (const std::size_t size : {8U, 9U}) {
    {
      const InlineArray<std::shared_ptr<int>> array(size, [&](std::size_t) { return shared; });
      CHECK(shared.use_count() == static_cast<long>(size) + 1);
    }
    CHECK(shared.use_count() == 1);
  }
}

TEST_CASE("an array that is larger than the address space is not allocated") {
  CHECK_THROWS_AS(InlineArray<int>(SIZE_MAX / 4 + 2), std::bad_alloc);  // 4 bytes, if the product overflowed
  CHECK_THROWS_AS(InlineArray<int>(SIZE_MAX), std::bad_alloc);
}
