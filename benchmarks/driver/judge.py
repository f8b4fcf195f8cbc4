# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ratios, and whether targets are met."""

from dataclasses import dataclass
from statistics import median

from driver.model import Across, Limit, Ratio

TWO_THREADS = 0.99


@dataclass
class Spread:
    """Numbers of several rounds."""

    median: float
    least: float
    most: float
    rounds: int
    disturbed: bool  # whether rounds with foreign load had to be used

    @staticmethod
    def of(values, disturbed):
        return Spread(median(values), min(values), max(values), len(values), disturbed)


def usable(*lists):
    """The rounds that count: the undisturbed ones if they are most, else all, since there is nothing better."""
    rounds = list(zip(*lists))
    quiet = [group for group in rounds if not any(result["disturbed"] for result in group)]
    return (quiet, False) if 2 * len(quiet) > len(rounds) else (rounds, True)


def number(result, key):
    value = result.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def values_of(results, key):
    """A Spread of one key, or None if it is not there."""
    rounds, disturbed = usable(results)
    values = [number(result, key) for (result,) in rounds]
    return None if not values or None in values else Spread.of(values, disturbed)


def is_serial(row, results):
    """Whether this contender did not do what the row is about: run the two bodies on two threads."""
    if not row.two_threads:
        return False
    spread = values_of(results, "two_threads")
    return spread is None or spread.median < TWO_THREADS


def base_of(row, measured):
    """The contender that the others are compared with: the first of ours that took part."""
    names = [c.name for c in row.contenders if c.ours and c.name in measured.results]
    return next((n for n in names if not is_serial(row, measured.results[n])), None)


def ratio(row, ours, peer, key=None, better=None):
    """How many times better ours is than the peer, round by round."""
    key, better = key or row.metric, better or row.better
    rounds, disturbed = usable(ours, peer)
    ratios = []
    for own, other in rounds:
        a, b = number(own, key), number(other, key)
        if a is None or b is None or min(a, b) < 0 or max(a, b) == 0:
            return None
        ratios.append((b / a if a else float("inf")) if better == "lower" else (a / b if b else float("inf")))
    return Spread.of(ratios, disturbed) if ratios else None


@dataclass
class Verdict:
    row: str
    variant: str
    text: str
    key: str  # what the value is, if it has a unit
    value: Spread  # none: could not be measured
    met: bool  # none: could not be judged
    why: str = ""


def judge(row, measured):
    """A Verdict for each target of the row, in each variant that it is about. `measured` is by variant."""
    verdicts = []
    for target in row.targets:
        if isinstance(target, Across):
            above, below = (measured[v].results.get(target.ours) if v in measured else None
                            for v in (target.above, target.below))
            value = ratio(row, above, below, better="higher") if above and below else None
            met = None if value is None else value.median <= target.at_most
            verdicts.append(Verdict(row.number, "", str(target), "", value, met, "" if value else "not measured"))
            continue
        for variant, here in measured.items():
            if target.variant is not None and target.variant != variant:
                continue
            verdicts.append(judge_one(row, variant, here, target))
    return verdicts


def judge_one(row, variant, here, target):
    ours = here.results.get(target.ours)
    verdict = Verdict(row.number, variant, str(target), target.key if isinstance(target, Limit) else "", None, None)
    if not ours:
        verdict.why = here.absent.get(target.ours) or here.faults.get(target.ours) or "not measured"
    elif isinstance(target, Limit):
        verdict.value = values_of(ours, target.key)
        if verdict.value is None:
            verdict.why = f"says no {target.key}"
        elif target.at_most is not None:
            verdict.met = verdict.value.median <= target.at_most
        else:
            verdict.met = verdict.value.median >= target.at_least
    elif isinstance(target, Ratio):
        peer = here.results.get(target.peer)
        if not peer:
            verdict.why = f"{target.peer}: {here.absent.get(target.peer) or here.faults.get(target.peer) or 'not measured'}"
        elif is_serial(row, ours) or is_serial(row, peer):
            verdict.why = f"{target.ours if is_serial(row, ours) else target.peer} ran on one thread"
        else:
            verdict.value = ratio(row, ours, peer, target.key)
            verdict.met = None if verdict.value is None else verdict.value.median >= target.at_least
    return verdict
