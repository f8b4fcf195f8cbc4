// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that docs/guide/from_pytorch.md puts beside those of torch.cuda.
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fanout/cuda.hpp>

#include "cuda/gpus.hpp"

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Names that are called in the second column of the page's table of torch.cuda.
std::set<std::string> functions_on_the_page() {
  const std::string page =
      read_text(std::filesystem::path(__FILE__).parent_path() / "../../docs/guide/from_pytorch.md");
  std::set<std::string> names;
  const std::size_t table = page.find("| `torch.cuda` | `fanout::cuda` |");
  REQUIRE(table != std::string::npos);
  const std::string letters = "abcdefghijklmnopqrstuvwxyz_";
  for (std::size_t line = page.find('\n', table); line != std::string::npos && page[line + 1] == '|';) {
    const std::size_t end = page.find('\n', line + 1);
    const std::string row = page.substr(line + 1, end - line - 1);
    const std::string ours = row.substr(row.find(" | ") + 3);
    const std::string shown = ours.starts_with("the same names") ? row : ours;
    for (std::size_t at = shown.find('('); at != std::string::npos; at = shown.find('(', at + 1)) {
      const std::size_t begin = at == 0 ? 0 : shown.find_last_not_of(letters, at - 1) + 1;
      if (begin < at) names.insert(shown.substr(begin, at - begin));
    }
    line = end;
  }
  return names;
}

}  // namespace

TEST_CASE("documentation: what is beside torch.cuda's functions does what they do") {
  if (!fanout_test::has_stand_in(2)) return;
  using namespace fanout::cuda;
  using fanout::CudaDevice, fanout::Options, fanout::ParallelModel, fanout::Tensor;

  CHECK(is_available());
  CHECK(unavailable_reason().empty());
  CHECK(device_count() >= 2);
  const int before = current_device();
  set_device(1);
  CHECK(current_device() == 1);
  set_device(before);
  synchronize(1);
  CHECK_THROWS_AS(set_device(-1), fanout::InvalidDeviceId);
  {
    const DeviceGuard on_device(1);
    CHECK(current_device() == 1);
  }
  CHECK(current_device() == before);
  CHECK(device_name(1) == device_properties(1).name);
  CHECK(device_capability(1).major == device_properties(1).major);
  CHECK(peer_trusted(0, 1) <= can_access_peer(0, 1));

  const CudaDevice device(1);
  Tensor<float, 1> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  reset_peak_memory(1);
  const std::size_t allocated = memory_allocated(1);
  {
    const Tensor<float, 1> there = fanout::to(x, device);
    CHECK(memory_allocated(1) >= allocated + 4000);
    CHECK(fanout::to_host(there)[999] == 999);
  }
  CHECK(max_memory_allocated(1) >= allocated + 4000);
  CHECK(memory_reserved(1) >= memory_allocated(1));
  empty_cache();
  CHECK(memory_info(1).free <= memory_info(1).total);
  const Tensor<float, 1> pinned = pin(std::move(x));
  CHECK(pinned[999] == 999);

  Event a(Timing::on), b(Timing::on);
  {
    Stream s(1);
    const Stream t(1);
    t.record(a);
    s.wait(t);
    s.record(b);
    s.synchronize();
  }
  CHECK(b.elapsed_since(a) >= 0);

  const ParallelModel draws{[](fanout::Context auto& ctx, fanout::RowRange rows) {
                              std::vector<unsigned> numbers;
                              for (std::size_t i = 0; i < rows.size(); ++i) numbers.push_back(ctx.random(i)());
                              return numbers;
                            },
                            fanout::cuda_devices(), Options{.seed = 7}};
  CHECK(draws(fanout::Range{3}).size() == 3);

  const std::string here = read_text(__FILE__);
  const std::set<std::string> names = functions_on_the_page();
  CHECK(names.size() > 20);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK((here.find(name + '(') != std::string::npos || name == "stream" || name == "s"));
  }
}
