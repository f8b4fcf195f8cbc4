// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/cores.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "support/affinity.hpp"
#include "support/fake_root.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::detail::process_cores;
using fanout::detail::quota_cores;

namespace {

/// A folder with the files of /proc and /sys in which the process has these control groups.
class Groups {
 public:
  Groups& file(const std::string& name, const std::string& text) {
    root_.write(name, text);
    return *this;
  }
  Groups& groups(const std::string& text) { return file("/proc/self/cgroup", text); }
  Groups& v2(const std::string& group, const std::string& limit) {
    return file("/sys/fs/cgroup" + group + "/cpu.max", limit);
  }
  Groups& v1(const std::string& group, const std::string& quota, const std::string& period = "100000\n") {
    const std::string folder = "/sys/fs/cgroup/cpu" + group;
    return file(folder + "/cpu.cfs_quota_us", quota).file(folder + "/cpu.cfs_period_us", period);
  }

  std::size_t cores() const { return quota_cores(root_.path()); }

 private:
  fanout_test::FakeRoot root_;
};

}  // namespace

TEST_CASE("the process's cores are those of its first thread's affinity mask, whichever thread asks") {
  const auto mine = fanout_test::own_cores();  // tests run on the first thread
  REQUIRE_FALSE(mine.empty());
  CHECK(process_cores() == mine);
  std::vector<int> other;
  std::thread([&] {
    fanout_test::narrow_to({mine.back()});
    other = process_cores();
  }).join();
  CHECK(other == mine);
}

TEST_CASE("the process's cores follow a narrower mask") {
  const auto mine = fanout_test::own_cores();
  if (mine.size() < 2) {
    fanout_test::skip("this needs two cores");
    return;
  }
  for (const int core : {mine.front(), mine.back()}) {
    CHECK(fanout_test::in_child([core] {
            if (!fanout_test::narrow_to({core})) return 1;
            return process_cores() == std::vector<int>{core} ? 0 : 2;
          }) == 0);
  }
  CHECK(process_cores() == mine);
}

TEST_CASE("cgroup v2: the quota of the process's own group counts, a part of a core as a whole one") {
  const auto cores = [](const std::string& limit) {
    return Groups().groups("0::/jobs/mine\n").v2("/jobs/mine", limit).cores();
  };
  CHECK(cores("300000 100000\n") == 3);
  CHECK(cores("250000 100000\n") == 3);
  CHECK(cores("200001 100000\n") == 3);
  CHECK(cores("1000 100000\n") == 1);
  CHECK(cores("100000 50000\n") == 2);
  CHECK(cores("100000 50000") == 2);  // no end of line
  CHECK(cores("max 100000\n") == 0);
}

TEST_CASE("cgroup v2: the tightest quota from the own group up to the root wins") {
  const std::string max = "max 100000\n";
  const std::string two = "200000 100000\n";
  const std::string five = "500000 100000\n";
  const auto cores = [](const std::string& root, const std::string& outer, const std::string& own) {
    return Groups().groups("0::/outer/own\n").v2("", root).v2("/outer", outer).v2("/outer/own", own).cores();
  };
  CHECK(cores(max, max, five) == 5);
  CHECK(cores(max, two, five) == 2);
  CHECK(cores(two, max, five) == 2);
  CHECK(cores(two, five, max) == 2);
  CHECK(cores(five, five, two) == 2);
  CHECK(cores(max, max, max) == 0);
  // In a container the own group is the root of what can be seen.
  CHECK(Groups().groups("0::/\n").v2("", two).cores() == 2);
  CHECK(Groups().groups("0::/not/mounted/here\n").v2("", two).cores() == 2);
  // Siblings do not count.
  CHECK(Groups().groups("0::/a\n").v2("/a", five).v2("/b", two).v2("/a/c", two).v2("/ab", two).cores() == 5);
}

TEST_CASE("cgroup v1: the quota of the hierarchy with the cpu controller counts, alone or with cpuacct") {
  const std::string five = "500000\n";
  const std::string two = "200000\n";
  const std::string none = "-1\n";
  for (const char* controllers : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    CAPTURE(controllers);
    const std::string groups = "7:memory:/m\n4:" + std::string(controllers) + ":/outer/own\n1:name=systemd:/s\n";
    CHECK(Groups().groups(groups).v1("/outer/own", five).cores() == 5);
    CHECK(Groups().groups(groups).v1("/outer/own", five).v1("/outer", two).cores() == 2);
    CHECK(Groups().groups(groups).v1("/outer/own", two).v1("/outer", five).v1("", none).cores() == 2);
    CHECK(Groups().groups(groups).v1("/outer/own", none).v1("", five).cores() == 5);
    CHECK(Groups().groups(groups).v1("/outer/own", none).cores() == 0);
    CHECK(Groups().groups(groups).v1("/m", two).cores() == 0);
  }
  for (const char* others : {"cpuset", "cpuacct", "notcpu,memory"}) {
    CAPTURE(others);
    CHECK(Groups().groups("4:" + std::string(others) + ":/own\n").v1("/own", two).cores() == 0);
  }
}

TEST_CASE("cgroup v1 and v2 side by side: the tighter one wins") {
  const std::string groups = "4:cpu,cpuacct:/own\n0::/own\n";
  CHECK(Groups().groups(groups).v1("/own", "300000\n").v2("/own", "200000 100000\n").cores() == 2);
  CHECK(Groups().groups(groups).v1("/own", "100000\n").v2("/own", "200000 100000\n").cores() == 1);
  CHECK(Groups().groups(groups).v1("/own", "300000\n").cores() == 3);
}

TEST_CASE("files that are missing or make no sense are no quota") {
  CHECK(Groups().cores() == 0);
  CHECK(Groups().groups("").cores() == 0);
  CHECK(Groups().groups("0::/own\n").cores() == 0);
  for (const char* groups : {"\n", "::\n", "0\n", "0:\n", "0::\n", "0::own\n", "0::a/b\n", "4:cpu:own\n", "\n\n:::::\n",
                             "0::////\n", "0::/own"}) {
    CAPTURE(groups);
    CHECK(Groups().groups(groups).cores() == 0);
  }
  for (const char* limit :
       {"", "\n", " ", "max", "100000", "100000 \n", "x y\n", "0 0\n", "100000 0\n", "-100000 100000\n",
        "100000 -100000\n", "nan 100000\n", "inf 100000\n", "1e300 1\n", "max max\n"}) {
    CAPTURE(limit);
    CHECK(Groups().groups("0::/own\n").v2("/own", limit).cores() == 0);
  }
  CHECK(Groups().groups("4:cpu:/own\n").v1("/own", "200000\n", "").cores() == 0);
  CHECK(Groups().groups("4:cpu:/own\n").v1("/own", "", "100000\n").cores() == 0);
  CHECK(Groups().groups("4:cpu:/own\n").v1("/own", "0\n").cores() == 0);
  // One group whose file makes no sense does not hide the others.
  CHECK(Groups().groups("0::/a/b\n").v2("/a/b", "x\n").v2("/a", "200000 100000\n").cores() == 2);
}

TEST_CASE("without a root the quota is the machine's own") {
  CHECK_NOTHROW(quota_cores());
  CHECK(quota_cores() == quota_cores(""));
}
