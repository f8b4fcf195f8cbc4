#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""table.py TIMES [--picture FILE]: prints the simulated times as a table, and the model of Horovod's scaling. Fails if the
target is missed: at most 1.3 times MPI_Allreduce at 1,024 ranks, for the agreement and for 100 MB."""

import argparse
import sys

import horovod

NAMES = {0: "agreement", 4: "one number", 1024: "1 KiB", 1048576: "1 MiB", 104857600: "100 MiB"}
TARGET = 1.3
TEXT, OURS, PEER = "#768390", "#1f9e89", "#8d96a0"


def read(path):
    """{bytes: [(ranks, seconds of ours, seconds of MPI_Allreduce)]}; without seconds if the case was not simulated."""
    times = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            seconds = tuple(float(word) for word in words[2:4]) if len(words) == 4 else (None, None)
            times.setdefault(int(words[1]), []).append((int(words[0]), *seconds))
    return {size: sorted(times[size]) for size in sorted(times)}


def quantity(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def show(times):
    print("what        ranks      fanout  MPI_Allreduce  ratio")
    for size, cases in times.items():
        for ranks, ours, theirs in cases:
            name = NAMES.get(size, f"{size} bytes")
            if ours is None:
                print(f"{name:10}  {ranks:5}  not simulated: it failed, or took too long")
            else:
                print(f"{name:10}  {ranks:5}  {quantity(ours):>10}  {quantity(theirs):>13}  {ours / theirs:5.2f}")


def missed(times):
    """The targets that are missed, as text."""
    found = []
    for size in (0, 104857600):
        for ranks, ours, theirs in times.get(size, []):
            if ranks == 1024 and (ours is None or ours > TARGET * theirs):
                found.append(f"{NAMES[size]} at {ranks} ranks: " + ("not simulated" if ours is None else
                                                                   f"{ours / theirs:.2f} times MPI_Allreduce"))
    return found


def draw(path, times):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "fanout", "font.family": "sans-serif", "font.size": 9,
        "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"], "text.color": TEXT,
        "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": TEXT, "grid.alpha": 0.22,
        "grid.linewidth": 0.6, "axes.titlesize": 10, "axes.titlelocation": "left", "axes.titlecolor": TEXT,
        "legend.frameon": False})
    figure, axes = plt.subplots(1, len(times) + 1, figsize=(2.4 * (len(times) + 1), 3), layout="constrained")
    for axis, (size, cases) in zip(axes, times.items()):
        cases = [case for case in cases if case[1] is not None]
        ranks = [case[0] for case in cases]
        axis.plot(ranks, [1e6 * case[2] for case in cases], "o-", markersize=4, color=PEER, label="MPI_Allreduce")
        axis.plot(ranks, [1e6 * case[1] for case in cases], "o-", markersize=4, color=OURS, label="fanout")
        axis.set(xscale="log", yscale="log", xlabel="ranks", title=NAMES.get(size, f"{size} bytes"))
        axis.set_xticks([2, 32, 1024], ["2", "32", "1,024"])
        axis.minorticks_off()
    axes[0].set_ylabel("simulated time, us")
    axes[0].legend()
    table = horovod.rows()[2]
    for shift, color, label, at in ((-0.27, PEER, "Horovod, published", 1), (0, "#3b82c4", "Horovod, model", 2),
                                    (0.27, OURS, "fanout, model", 3)):
        axes[-1].bar([i + shift for i in range(len(table))], [100 * row[at] for row in table], 0.25, color=color, label=label)
    axes[-1].set_xticks(range(len(table)), [row[0].replace(" ", "\n").replace("-", "-\n") for row in table])
    axes[-1].set(title="512 GPUs: scaling, %", ylim=(0, 150))
    axes[-1].legend(loc="upper right")
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("times")
    arguments.add_argument("--picture")
    given = arguments.parse_args()
    times = read(given.times)
    show(times)
    if given.picture:
        draw(given.picture, times)
    print()
    horovod.main()
    for text in missed(times):
        print(f"MISSED: {text}")
    sys.exit(1 if missed(times) else 0)


if __name__ == "__main__":
    main()
