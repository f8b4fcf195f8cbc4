# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured, as data: rows, their contenders and their targets."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Contender:
    """One column of a row: a program and the keys that it is called with."""

    name: str
    program: str
    keys: dict = field(default_factory=dict)
    ours: bool = False
    only: tuple = ()  # the variants it takes part in; none: all
    full_only: bool = False


@dataclass(frozen=True)
class Ratio:
    """The median over rounds of peer / ours (ours / peer where more is better) is to reach a number."""

    ours: str
    peer: str
    at_least: float
    variant: str = None  # none: each
    key: str = None  # none: the row's metric

    def __str__(self):
        return f"{self.peer} / {self.ours} at least {self.at_least:g}"


@dataclass(frozen=True)
class Limit:
    """The median over rounds of a key of one contender is not to pass a number."""

    ours: str
    key: str
    at_most: float = None
    at_least: float = None
    variant: str = None

    def __str__(self):
        bound = f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
        return f"{self.key} of {self.ours} {bound}"


@dataclass(frozen=True)
class Across:
    """The metric in one variant over that in another, round by round, is not to pass a number."""

    ours: str
    above: str
    below: str
    at_most: float

    def __str__(self):
        return f"{self.ours}, {self.above} / {self.below} at most {self.at_most:g}"


@dataclass(frozen=True)
class Row:
    """One workload. All contenders of a variant take turns, in a new order in each round."""

    number: str
    title: str
    group: str  # rows of one group share a picture
    case: str
    contenders: list
    keys: dict = field(default_factory=dict)
    variants: dict = field(default_factory=lambda: {"": {}})
    metric: str = "median_ns"
    better: str = "lower"
    two_threads: bool = False  # who does not run the bodies on two threads has no ratio
    targets: list = field(default_factory=list)
    rounds: int = 5
    full_only: bool = False
    label: str = ""  # what the metric is, for pictures; none: as all metrics of this name

    def check(self):
        """Says what is wrong with the definition: a slip in a name would show as a target that is never judged."""
        names = {c.name for c in self.contenders}
        assert len(names) == len(self.contenders), f"row {self.number}: two contenders have one name"
        assert any(c.ours for c in self.contenders), f"row {self.number}: none is ours"
        assert self.better in ("lower", "higher"), f"row {self.number}: better is lower or higher"
        for contender in self.contenders:
            for variant in contender.only:
                assert variant in self.variants, f"row {self.number}: {contender.name} has no variant {variant}"
        for target in self.targets:
            for name in (target.ours, getattr(target, "peer", target.ours)):
                assert name in names, f"row {self.number}: a target names {name}"
            for variant in (getattr(target, a, None) for a in ("variant", "above", "below")):
                assert variant is None or variant in self.variants, f"row {self.number}: a target names {variant}"
