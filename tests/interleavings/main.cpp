// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The explorer of interleavings. It runs the library's own headers on a modelled machine (machine.hpp), which replaces
// atomics, futexes, pauses, the clock and the start of threads. It executes each scenario of protocols/ in every way
// that the scenario's limits allow: by default two preemptions and two surprises. An execution fails if it ends in a
// deadlock (a lost wake-up, or a request without an answer), in a livelock, in a data race, in the use of a destroyed
// atomic, or with a false check(). The explorer then prints each step of the execution, and how to repeat it. It does
// the same with each fault of a protocol put in, and fails if the scenario does not find the fault. Nothing depends on
// real time or on the hardware.
//
// Modelled:
// - Threads run one at a time. A switch may come before each operation on an atomic, each sleep and each wake-up. A
//   switch costs a preemption if the thread could go on. A thread that yields waits until another one has written.
// - A loop of pauses ends in one of two ways: another thread changes something, or all turns pass without a change.
// - Memory is weaker than that of x86. A load may return an old value, as if the store were still in the buffer of its
//   core, or the load had been early. Release, acquire, release sequences and seq_cst limit this as in C++.
// - A weak compare-exchange may fail without a reason. A failed one is a load and may return an old value.
// - A sleep compares the newest value of the word, ends at a wake-up, and may end without a reason. A wake-up orders no
//   memory. A sleep with a time ends by itself only if the scenario allows timeouts: otherwise they would hide a lost
//   wake-up.
// - The plain variables of the scenarios are checked for data races. Those inside the headers are not.
//
// Not modelled:
// - The stores to one location take effect in the order of execution, and so do the seq_cst accesses. A load never
//   returns a value that is stored later (load buffering). tests/litmus asks herd7 about such outcomes. It shows, for
//   example, that the look of Worker::wake() must be seq_cst; the explorer cannot.
// - Forks, signals, and counters that wrap around.
// - Executions beyond the limits. `--deeper` adds one preemption to each scenario, or a surprise to one
//   without any.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "choices.hpp"
#include "machine.hpp"
#include "protocol.hpp"

namespace interleavings { namespace {

struct Found {
  long schedules = 0;
  std::string failure;   // of the first execution that failed
  std::string schedule;  // of that execution
  std::string error;     // of the search itself
};

/// Executes a scenario in every way that its limits allow, until an execution fails.
Found explore(const Scenario& scenario, const Fault* fault, std::set<Access>* accesses = nullptr) {
  constexpr long most_schedules = 100'000'000;
  Choices choices;
  Machine machine(choices);
  machine.note(accesses);
  Found found;
  do {
    ++found.schedules;
    found.failure = machine.execute(scenario.body, scenario.limits, fault, false);
    if (choices.differs()) found.error = "an execution depends on more than its choices";
    if (found.schedules == most_schedules) found.error = "there are too many schedules";
  } while (found.failure.empty() && found.error.empty() && choices.next());
  found.schedule = choices.to_string();
  return found;
}

/// Repeats an execution and prints its steps.
void replay(const Scenario& scenario, const std::string& schedule) {
  Choices choices = Choices::parse(schedule);
  Machine machine(choices);
  const std::string failure = machine.execute(scenario.body, scenario.limits, nullptr, true);
  std::printf("  %s\n", failure.empty() ? "nothing went wrong" : failure.c_str());
}

/// True if no execution of the scenario fails.
bool is_sound(const Protocol& protocol, const Scenario& scenario) {
  const Found found = explore(scenario, nullptr);
  const bool sound = found.failure.empty() && found.error.empty();
  std::printf("%s: %s: %ld schedules, %s\n", protocol.name, scenario.name, found.schedules,
              sound                 ? "sound"
              : found.error.empty() ? found.failure.c_str()
                                    : found.error.c_str());
  if (found.failure.empty()) return sound;
  replay(scenario, found.schedule);
  std::printf("  again: interleavings %s '%s' %s\n", protocol.name, scenario.name, found.schedule.c_str());
  return false;
}

/// True if an execution of the fault's scenario fails with the fault.
bool is_found(const Protocol& protocol, Fault fault) {
  Found found;
  found.error = fault.find(FANOUT_INCLUDE);
  if (found.error.empty()) {
    found.error = "there is no such scenario";
    for (const Scenario& scenario : protocol.scenarios) {
      if (scenario.name == fault.scenario) found = explore(scenario, &fault);
    }
  }
  if (found.error.empty() && found.failure.empty()) found.error = "NOT FOUND";
  std::printf("%s: %s: '%s' %s: %ld schedules, %s\n", protocol.name, fault.scenario.c_str(), fault.text.c_str(),
              name_of(fault.how), found.schedules, found.error.empty() ? found.failure.c_str() : found.error.c_str());
  return found.error.empty();
}

/// Weakens each operation of the headers in turn. Prints those for which a weaker order passes all scenarios: the order
/// is stronger than it need be, or a scenario or the model lacks what would show the need.
void weaken(const std::vector<Protocol>& protocols) {
  std::map<Access, std::vector<const Scenario*>> uses;
  for (const Protocol& protocol : protocols) {
    for (const Scenario& scenario : protocol.scenarios) {
      std::set<Access> accesses;
      explore(scenario, nullptr, &accesses);
      for (const Access& access : accesses) uses[access].push_back(&scenario);
    }
  }
  for (const auto& [access, scenarios] : uses) {
    constexpr std::string_view library = "fanout/";
    if (access.order == Order::relaxed || !access.file.starts_with(library)) continue;
    for (const Fault::How how : {Fault::How::relaxed, Fault::How::acq_rel}) {
      if (how == Fault::How::acq_rel && access.order != Order::seq_cst) continue;
      Fault fault{access.file.substr(library.size()), "", how, ""};
      fault.operation = access.operation;
      fault.line = access.line;
      const bool needed = std::any_of(scenarios.begin(), scenarios.end(), [&](const Scenario* scenario) {
        return !explore(*scenario, &fault).failure.empty();
      });
      if (needed) continue;
      std::printf("%s:%u: %s passes all scenarios\n", access.file.c_str(), access.line,
                  how == Fault::How::relaxed ? "relaxed" : "acq_rel");
      break;
    }
  }
}

}}  // namespace interleavings

/// interleavings [--deeper] [PROTOCOL...]      explores these protocols, or all
/// interleavings PROTOCOL SCENARIO SCHEDULE    repeats one execution and prints its steps
/// interleavings [--deeper] --weaken           prints the orders in the headers that no scenario needs
int main(int count, char** arguments) {
  using namespace interleavings;
  std::vector<Protocol> protocols{fork_safe_mutex(), ticket_lock(),  shared_mutex(), task(),
                                  task_queue(),      handoff_slot(), worker()};
  std::vector<std::string_view> wanted(arguments + 1, arguments + count);
  if (!wanted.empty() && wanted.front() == "--deeper") {
    wanted.erase(wanted.begin());
    for (Protocol& protocol : protocols) {
      for (Scenario& scenario : protocol.scenarios) {
        Limits& limits = scenario.limits;
        ++(limits.surprises == 0 ? limits.surprises : limits.preemptions);
      }
    }
  }
  if (wanted.size() == 1 && wanted.front() == "--weaken") return weaken(protocols), EXIT_SUCCESS;
  bool good = true;
  bool known = wanted.empty();
  for (const Protocol& protocol : protocols) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), protocol.name) == wanted.end()) continue;
    known = true;
    for (const Scenario& scenario : protocol.scenarios) {
      if (wanted.size() != 3 || wanted[1] != scenario.name) continue;
      replay(scenario, std::string(wanted[2]));
      return EXIT_SUCCESS;
    }
    for (const Scenario& scenario : protocol.scenarios) good = is_sound(protocol, scenario) && good;
    for (const Fault& fault : protocol.faults) good = is_found(protocol, fault) && good;
  }
  if (!known) std::fprintf(stderr, "interleavings: there is no such protocol\n");
  return good && known ? EXIT_SUCCESS : EXIT_FAILURE;
}
