// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program without fanout. Its compile time is the unit in which benchmarks/compile_time/run gives the others.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

int main() {
  const std::vector<std::string> words{"each", "word", "counts", "and", "each", "word", "again"};
  auto counting = std::async(std::launch::async, [&] {
    std::unordered_map<std::string, std::size_t> counts;
    for (const std::string& word : words) ++counts[word];
    std::multimap<std::size_t, std::string, std::greater<>> most;
    for (const auto& [word, count] : counts) most.emplace(count, word);
    return most.begin()->first;
  });
  std::vector<double> values(1000);
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  std::generate(values.begin(), values.end(), [&] { return normal(generator); });
  std::stable_sort(values.begin(), values.end());
  const std::function<bool(double)> is_positive = [](double value) { return value > 0; };
  const auto positive = std::count_if(values.begin(), values.end(), is_positive);
  std::printf("%zu %td\n", counting.get(), positive);
}
