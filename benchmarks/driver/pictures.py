# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One SVG for each group of rows, of colours that can be read on white and on black."""

import os

from driver.judge import base_of, is_serial, ratio, values_of
from driver.table import quantity

TEXT = "#768390"
OURS = ("#1f9e89", "#3b82c4", "#9a6fd0", "#5cb85c", "#c0769e")
PEER = "#8d96a0"
LINES = ("#c98a2b", "#b5607a", "#8d96a0", "#7a8f4f", "#a0785a", "#6f8fa8", "#a08fb0", "#909060")
LABELS = {"median_ns": "time of a call, median", "cpu_share": "cores used", "efficiency": "efficiency",
          "overhead_ns": "time above that of one body, median", "excess_median_ns": "median above serial",
          "gb_per_s": "copied, GB/s", "allocations": "allocations in a call", "faults": "page faults in a call"}


def draw(folder, rows, measured):
    """Writes folder/GROUP.svg for each group that something was measured of. Returns the paths."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "fanout", "font.family": "sans-serif", "font.size": 9,
        "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"],
        "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
        "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "axes.spines.bottom": False, "axes.grid": True,
        "grid.color": TEXT, "grid.alpha": 0.22, "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.titlesize": 10,
        "axes.titlelocation": "left", "axes.titlecolor": TEXT, "legend.frameon": False,
    })
    os.makedirs(folder, exist_ok=True)
    paths = []
    for group in dict.fromkeys(row.group for row in rows):
        panels = []
        for row in (r for r in rows if r.group == group):
            parts = {v: m for v, m in measured.get(row.number, {}).items() if m.results}
            if len(parts) > 2:
                panels.append((over_variants, row, list(parts.values()), 3.2))
            else:
                panels += [(in_order, row, [m], 0.75 + 0.23 * len(m.results)) for m in parts.values()]
        if not panels:
            continue
        figure, axes = plt.subplots(len(panels), 1, figsize=(8, sum(p[3] for p in panels) + 0.3), squeeze=False,
                                    height_ratios=[p[3] for p in panels], layout="constrained")
        for axis, (kind, row, parts, _) in zip(axes[:, 0], panels):
            kind(axis, row, parts)
        paths.append(os.path.join(folder, f"{group}.svg"))
        figure.savefig(paths[-1], transparent=True, metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return paths


def colours(row, names):
    """Ours stand out. By name, in the order of the row, so that a picture does not change its colours."""
    ours = [c.name for c in row.contenders if c.ours]
    peers = [c.name for c in row.contenders if not c.ours]
    return {n: OURS[ours.index(n) % len(OURS)] if n in ours else LINES[peers.index(n) % len(LINES)] for n in names}


def in_order(axis, row, parts):
    """One line for each contender, the best on top: a dot on a logarithmic scale where the values differ much."""
    (measured,) = parts
    values = {n: values_of(r, row.metric) for n, r in measured.results.items()}
    values = {n: s for n, s in values.items() if s is not None}
    names = sorted(values, key=lambda n: values[n].median, reverse=row.better == "lower")
    medians = [values[n].median for n in names]
    if not names:
        return
    ours = {c.name for c in row.contenders if c.ours}
    base = base_of(row, measured)
    logarithmic = min(medians) > 0 and max(medians) / min(medians) > 6
    tint = {n: OURS[0] if n in ours else PEER for n in names}
    places = range(len(names))
    if logarithmic:
        axis.set_xscale("log")
        for y, n in zip(places, names):
            serial = is_serial(row, measured.results[n])
            axis.plot([values[n].least, values[n].most], [y, y], color=tint[n], linewidth=1.5, alpha=0.6)
            axis.plot(values[n].median, y, "o", markersize=6, color=tint[n], markerfacecolor="none" if serial else tint[n])
        axis.set_xlim(min(medians) / 1.6, max(medians) * 12)
    else:
        axis.barh(places, medians, height=0.6, color=[tint[n] for n in names])
        axis.set_xlim(min(0, min(medians)), max(max(medians), 1e-9) * 1.45)
    for y, n in zip(places, names):
        results = measured.results[n]
        text = with_micro(quantity(row.metric, values[n].median))
        compared = None
        if is_serial(row, results):
            text += ", one thread"
        elif base and n != base:
            compared = ratio(row, measured.results[base], results)
        if compared:
            text += f", {compared.median:.3g}×"
        cpu = values_of(results, "cpu_share")
        if cpu and "gap" in row.keys:
            text += f", {100 * cpu.median:.0f} % cpu"
        axis.annotate(text, (max(values[n].most, values[n].median) if logarithmic else values[n].median, y),
                      xytext=(6, 0), textcoords="offset points", va="center", color=TEXT, fontsize=8)
    axis.set_yticks(list(places), names)
    axis.tick_params(which="both", length=0)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.grid(axis="y", visible=False)
    ticks_as_quantities(axis.xaxis, row)
    title(axis, row, measured.variant)


def over_variants(axis, row, parts):
    """One line of dots for each contender over the variants."""
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(n for m in parts for n in m.results))
    ours = {c.name for c in row.contenders if c.ours}
    points = [(n, m.variant, values_of(m.results[n], row.metric)) for n in names for m in parts if n in m.results]
    points = [(n, variant, spread.median) for n, variant, spread in points if spread is not None]
    if len(parts) > 8 and all(", " in m.variant for m in parts):  # two things vary: one of them is a line
        points = [(", ".join(([n] if len(names) > 1 else []) + [variant.split(", ")[1]]), variant.split(", ")[0], y)
                  for n, variant, y in points]
        lines = list(dict.fromkeys(line for line, _, _ in points))
        tint = {line: (OURS + LINES)[i % len(OURS + LINES)] for i, line in enumerate(lines)}
    else:
        lines, tint = names, colours(row, names)
    labels = list(dict.fromkeys(x for _, x, _ in points))
    everything = [y for _, _, y in points]
    for line in lines:
        own = [(labels.index(x), y) for n, x, y in points if n == line]
        axis.plot([x for x, _ in own], [y for _, y in own], "o-", markersize=4, color=tint[line], label=line,
                  linewidth=2.2 if line in ours else 1.2, zorder=3 if line in ours else 2)
    if row.metric.startswith("excess"):
        axis.set_yscale("symlog", linthresh=200)
    elif everything and min(everything) > 0 and max(everything) / min(everything) > 6:
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_ylim(min(0, *everything) if everything else 0, None)
    crowded = sum(len(text) for text in labels) > 90
    axis.set_xticks(range(len(labels)), [with_micro(text) for text in labels], rotation=90 if crowded else 0, fontsize=7 if crowded else 9)
    axis.tick_params(which="both", length=0)
    axis.grid(axis="x", visible=False)
    ticks_as_quantities(axis.yaxis, row)
    if len(lines) > 1:
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), labelcolor=TEXT)
    title(axis, row, "")


def ticks_as_quantities(axis, row):
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: with_micro(quantity(row.metric, value))))
    axis.set_minor_formatter(NullFormatter())


def with_micro(text):
    return text[:-2] + "µs" if text.endswith(" us") else text


def title(axis, row, variant):
    what = row.label or LABELS.get(row.metric, row.metric.removesuffix("_ns").replace("_", " "))
    axis.set_title(f"{row.number}  {row.title}" + (f": {variant}" if variant else "") + f"  ({what})")
