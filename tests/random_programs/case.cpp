// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "case.hpp"

#include <exception>

#include "split_of.hpp"
#include "sweep.hpp"

namespace random_programs {

void note_fact(Tree& tree, const std::string& path, std::size_t fact) {
  tree.push_back({.path = path + '?', .leaf = {.numbers = {static_cast<double>(fact)}}});
}

Case::Case(std::uint64_t own_seed, const Program& program, std::size_t own_devices)
    : seed(own_seed), on_all(program.on_all) {
  Random random(seed + 1);
  devices = 1 + random.below(17);
  if (own_devices != 0) devices = own_devices;
  switch (random.below(8)) {
    case 0:
      rows = random.below(2);
      break;
    case 1:
    case 2:
      rows = random.below(devices);
      break;
    case 3:
      rows = devices;
      break;
    default:
      rows = random.below(50);
      break;
  }
  if (program.wide) axis = std::array{0, 1, -1, -2}[random.below(4)];
  sharing = drawn_sharing(random, devices);
  if (random.below(12) == 0) {
    odd_shard = random.below(devices);
    odd_choice = random.below(4);
  }
}

fanout::Options Case::options() const { return {.axis = axis, .split = split_of(sharing), .seed = seed}; }

void Case::clear() {
  result_.reset();
  for (Record& record : records) record = {};
}

void Case::run(const Tree& inputs, const std::function<void()>& call, const std::function<std::string()>& check_written,
               const std::function<void()>& restore) {
  inputs_ = inputs;
  const bool is_split =
      std::any_of(inputs.begin(), inputs.end(), [](const Item& item) { return item.axis != Item::not_split; });
  if (is_split) {
    parts_ = parts_of(sharing, rows, devices);
  } else {
    rows = 0;
    parts_.assign(on_all ? devices : 1, {});
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].device = i;
  }
  call_once(call, check_written);
  if (fails_allocations && wrong_.empty()) call_failing(call, check_written, restore);
}

void Case::check(Tree result) { result_ = std::move(result); }

void Case::call_once(const std::function<void()>& call, const std::function<std::string()>& check_written) {
  clear();
  std::string thrown;
  std::string message;
  try {
    call();
  } catch (const fanout::StructureMismatch& error) {
    thrown = "structure";
    message = error.what();
  } catch (const fanout::ShapeMismatch& error) {
    thrown = "shape";
    message = error.what();
  } catch (...) {
    return say("threw " + message_of(std::current_exception()));
  }
  if (const std::string wrong = check_records(); !wrong.empty())
    return say(wrong + (message.empty() ? "" : "\n" + message));
  std::vector<const Tree*> returned;
  for (std::size_t i = 0; i < parts_.size(); ++i) returned.push_back(&records[i].returned);
  std::string why;
  const Tree expected = put_together(returned, parts_, why);
  if (thrown != why.substr(0, why.find(':'))) {
    return say("expected to throw '" + why + "', found '" + thrown + "' " + message);
  }
  if (const std::string wrong = check_written(); !wrong.empty()) return say(wrong);
  if (!why.empty()) return;
  if (!result_) return say("no result");
  if (const std::string wrong = difference(expected, *result_); !wrong.empty()) return say("the result: " + wrong);
}

std::string Case::check_records() const {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const std::string who = "shard " + std::to_string(i) + " ";
    const bool is_one = i < parts_.size();
    if (record.runs != (is_one ? 1 : 0)) {
      return who + "ran " + std::to_string(record.runs) + " times, of " + std::to_string(parts_.size()) + " shards";
    }
    if (!is_one) continue;
    const Part& part = parts_[i];
    if (record.begin != part.begin || record.end != part.end || record.device != part.device ||
        record.size != parts_.size()) {
      return who + "expected rows [" + std::to_string(part.begin) + ", " + std::to_string(part.end) + ") on device " +
             std::to_string(part.device) + " of " + std::to_string(parts_.size()) + ", found [" +
             std::to_string(record.begin) + ", " + std::to_string(record.end) + ") on " +
             std::to_string(record.device) + " of " + std::to_string(record.size);
    }
    // A model's first call has the number 0.
    if (!fails_allocations && record.random != fanout::RandomStream(seed, 0, part.end - (part.rows() == 0 ? 0 : 1))()) {
      return who + "has other random numbers in its last row";
    }
    if (const std::string wrong = difference(cut(inputs_, part), record.seen); !wrong.empty()) {
      return who + "was handed: " + wrong;
    }
  }
  return {};
}

void Case::call_failing(const std::function<void()>& call, const std::function<std::string()>& check_written,
                        const std::function<void()>& restore) {
  const auto prepare = [&] {
    clear();
    restore();
  };
  const auto works_again = [&] {
    call_once(call, check_written);
    return wrong_;
  };
  const Sweep sweep = fail_each_allocation(prepare, call, works_again);
  failed_allocations_ = sweep.failed;
  wrong_ = sweep.wrong;
}

const Leaf& Source::draw(const std::string& path, std::size_t rank, Kind kind, int axis) {
  Item item{.path = path, .axis = axis, .kind = kind};
  std::size_t size = 1;
  for (std::size_t a = 0; a < rank; ++a) {
    const bool rows =
        axis != Item::not_split && static_cast<int>(a) == (axis < 0 ? static_cast<int>(rank) + axis : axis);
    item.leaf.extents.push_back(rows ? own_.rows : random_.below(8) == 0 ? 0 : 1 + random_.below(3));
    size *= item.leaf.extents.back();
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t x = random_.below(250);
    if (kind == Kind::text) {
      item.leaf.texts.push_back(std::string(x % 30, 'x') + std::to_string(x));
    } else {
      item.leaf.numbers.push_back(static_cast<double>(x));
    }
  }
  items.push_back(std::move(item));
  return items.back().leaf;
}

std::size_t Source::choose(const std::string& path, std::size_t end) {
  const std::size_t chosen = random_.below(end);
  note_fact(items, path, chosen);
  return chosen;
}

void Source::run(const std::function<void()>& call) {
  own_.run(
      items, call,
      [this] {
        for (const auto& check : written_) {
          if (std::string wrong = check(); !wrong.empty()) return "written in place: " + wrong;
        }
        return std::string();
      },
      [this] {
        for (const auto& restore : restored_) restore();
      });
}

const Leaf& Shard::draw(const std::string& path, std::size_t rank, Kind kind, bool window) {
  Item item{.path = path, .rule = rule_, .kind = kind};
  const int whole_rank = static_cast<int>(rank);
  if (rule_ == Rule::joined) item.axis = axis_ < 0 ? whole_rank + axis_ : axis_;
  const bool free = free_ != 0 || rule_ == Rule::first;
  Random same(hash(path, false));
  Random own(hash(path, true));
  const bool by_rows = same.below(2) == 0;
  const bool odd = rank > 0 && is_odd();
  std::size_t size = 1;
  for (int a = 0; a < whole_rank; ++a) {
    const std::size_t alike = same.below(8) == 0 ? 0 : 1 + same.below(3);
    const std::size_t each = own.below(8) == 0 ? 0 : 1 + own.below(3);
    std::size_t extent = free || a == item.axis ? each : alike + (odd ? 1 : 0);
    if (a == 0 && (window || (by_rows && (free || a == item.axis)))) extent = ctx_.rows().size();
    item.leaf.extents.push_back(extent);
    size *= extent;
  }
  const bool empty_among_others = ctx_.rows().size() == 0 && own_.rows != 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t x = own.below(250);
    if (kind == Kind::text) {
      item.leaf.texts.push_back(std::string(x % 30, 'z') + std::to_string(x));
      continue;
    }
    item.leaf.numbers.push_back(static_cast<double>(x));
    const bool no_mean = empty_among_others && rule_ == Rule::mean;
    const bool no_order = kind >= Kind::f32 && (rule_ == Rule::greatest || rule_ == Rule::least) && x % 25 == 0;
    if (no_mean || no_order) item.leaf.numbers.back() = std::numeric_limits<double>::quiet_NaN();
  }
  record_.returned.push_back(std::move(item));
  return record_.returned.back().leaf;
}

std::size_t Shard::choose(const std::string& path, std::size_t end) {
  std::size_t chosen = Random(hash(path, free_ != 0)).below(end);
  if (is_odd()) chosen = (chosen + 1) % end;
  note_fact(record_.returned, path, chosen);
  return chosen;
}

Shard::Shard(const Case& own, Ctx& ctx)
    : own_(own), ctx_(ctx), record_(own.records.at(ctx.rank())), rule_(Rule::joined), axis_(own.axis) {
  ++record_.runs;
  record_.begin = ctx.rows().first;
  record_.end = ctx.rows().last;
  record_.device = static_cast<std::size_t>(ctx.device().id().index);
  record_.size = ctx.size();
  record_.random = ctx.random(ctx.rows().size() == 0 ? 0 : ctx.rows().size() - 1)();
}

}  // namespace random_programs
