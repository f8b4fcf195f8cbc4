# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows 6 to 15: what work costs around and inside of calls."""

from driver.model import Across, Contender, Limit, Ratio, Row


def memory(name, contender, **keys):
    return Contender(name, "bench_memory_fanout", {"contender": contender, **keys}, ours=True)


def torch_memory(name, contender, threads=2):
    return Contender(name, "bench_memory_torch", {"contender": contender, "threads": threads})


def mlp(name, contender, block=0, **keys):
    return Contender(name, "bench_mlp_fanout", {"contender": contender, "block": block, **keys}, ours=True)


def openblas(threads, block=0):
    name = f"OpenBLAS, {threads} thread" + ("s" if threads > 1 else "") + (f", blocks of {block} rows" if block else "")
    return Contender(name, "bench_mlp_openblas", {"contender": "openblas", "threads": threads, "block": block})


def torch_mlp(name, contender, threads=2, ours=False):
    return Contender(name, "bench_mlp_torch", {"contender": contender, "threads": threads}, ours=ours)


def functor(name, program, contender="default", **keys):
    return Contender(name, "bench_functors_" + program, {"contender": contender, **keys}, ours=program == "fanout")


def full(*contenders):
    return [Contender(**{**c.__dict__, "full_only": True}) for c in contenders]


def only(variants, contender):
    return Contender(**{**contender.__dict__, "only": tuple(variants)})


def counted(*contenders):
    return [Contender(**{**c.__dict__, "keys": {**c.keys, "counts": 1}}) for c in contenders]


# Row 6 and 7: arrays, there and back.
VIEWS = memory("fanout", "views")
VIEWS_SPIN = memory("fanout, Spin", "views", wait="spin")
CAT_1 = torch_memory("torch chunk + cat, 1 thread", "chunk_cat", 1)
CAT = torch_memory("torch chunk + cat", "chunk_cat")
CAT_OUT = torch_memory("torch chunk + cat_out", "chunk_cat_out")
CLONE_CAT = torch_memory("torch chunk + clone + cat", "chunk_clone_cat")
CLONE_CAT_OUT = torch_memory("torch chunk + clone + cat_out", "chunk_clone_cat_out")
RETURNED = memory("fanout", "returned")
INTO = memory("fanout, into(y)", "into")
COLUMNS = memory("fanout, concat<1>", "columns")
COPY_LIMIT = Contender("limit: two cores that only copy", "bench_memory_limit", {"contender": "limit"})
COPY_TOGETHER = Contender("limit: two cores, one copy at a time", "bench_memory_limit", {"contender": "together"})
ONE_CORE = Contender("memcpy, 1 thread", "bench_memory_limit", {"contender": "one_core"})

FLOATS = {"1e4": {"floats": 1e4}, "1e5": {"floats": 1e5}, "1e6": {"floats": 1e6}, "1e7": {"floats": 1e7},
          "1e8": {"floats": 1e8}}
SIZES = {"64 KiB": {"floats": 2**14}, "1 MiB": {"floats": 2**18}, "64 MiB": {"floats": 2**24, "seconds": 0.3}}

# Row 8 to 10: networks. OpenBLAS packs matrices first, unless there are at most a million products: 8 rows of 256 x 256.
SMALL = {"rows": 64, "width": 256}
BLOCKS = mlp("fanout", "rows", block=8)
BLOCKS_SPIN = mlp("fanout, Spin", "rows", block=8, wait="spin")
REPLICAS = mlp("fanout, a replica each", "replicas", block=8)
ALL_ROWS = mlp("fanout, all rows at once", "rows")
COLUMNS_EACH = mlp("fanout, half of the features each", "columns")
MODULE_1 = torch_mlp("libtorch, 1 thread", "module", 1)
MODULE = torch_mlp("libtorch, 2 threads", "module")
PASSIVE = torch_mlp("libtorch, 2 threads, OpenMP passive", "passive")
DATA_PARALLEL = torch_mlp("libtorch data_parallel", "data_parallel")
KEPT_REPLICAS = torch_mlp("libtorch parallel_apply, replicas kept", "kept_replicas")
TORCH_MODEL = torch_mlp("fanout, libtorch's module", "fanout", ours=True)

# Row 11 and 12: functors.
MODEL = functor("fanout", "fanout")
MODEL_SPIN = functor("fanout, Spin", "fanout", wait="spin")
OPENMP = functor("OpenMP", "openmp")
OPENMP_ACTIVE = functor("OpenMP, active", "openmp", "active")
OPENMP_REGION = functor("OpenMP, one region for 64 sweeps", "openmp", "region")
TBB = functor("TBB", "tbb", "halves")
TBB_AUTO = functor("TBB, auto_partitioner", "tbb", "automatic")
THRUST = functor("Thrust OMP", "thrust", "halves")
THRUST_ROWS = functor("Thrust OMP, row by row", "thrust", "rows")
SERIAL = functor("serial", "serial")



# Row 13: headers.
def include(name, contender, ours=False):
    return Contender(name, "bench_include", {"contender": contender}, ours=ours)


INCLUDE = include("fanout", "fanout", ours=True)

# Row 15: elements.
def elements(name, contender, ours=True):
    return Contender(name, "bench_elements", {"contender": contender}, ours=ours)


REACHED = [elements("x(i, j) of a Tensor", "tensor"), elements("x[i][j] of a Tensor", "row"),
           elements("x(i, j) of a View", "view")]

ROWS = [
    Row(
        number="6", title="Scatter and gather, by rows, results in place", group="memory", case="scatter_gather",
        keys={"seconds": 0.15}, rounds=3, variants={"1e4": FLOATS["1e4"], "1e6": FLOATS["1e6"], "1e8": FLOATS["1e8"]},
        contenders=[VIEWS, VIEWS_SPIN, CAT, only(["1e4", "1e6"], CLONE_CAT)] + full(CAT_1, CAT_OUT, CLONE_CAT_OUT),
        targets=[
            Limit(VIEWS.name, "bytes_copied", at_most=0),
            Across(VIEWS.name, "1e8", "1e4", at_most=2),
            Ratio(VIEWS.name, CAT.name, at_least=15, variant="1e4"),
        ],
    ),
    Row(
        number="6b", title="Scatter and gather, by columns, results in place", group="memory", case="scatter_gather",
        keys={"seconds": 0.15, "dim": 1}, rounds=3, variants={"1e4": FLOATS["1e4"], "1e6": FLOATS["1e6"]},
        contenders=[VIEWS, CAT] + full(VIEWS_SPIN, CAT_1, CLONE_CAT, CAT_OUT, CLONE_CAT_OUT),
        targets=[Limit(VIEWS.name, "bytes_copied", at_most=0)],
    ),
    Row(
        number="6c", title="Scatter and gather, by rows, all sizes", group="memory", case="scatter_gather",
        variants=FLOATS, contenders=[VIEWS, VIEWS_SPIN, CAT_1, CAT, CAT_OUT, CLONE_CAT, CLONE_CAT_OUT], full_only=True,
    ),
    Row(
        number="6d", title="Scatter and gather, by columns, all sizes", group="memory", case="scatter_gather",
        keys={"dim": 1}, variants=FLOATS, contenders=[VIEWS, VIEWS_SPIN, CAT_1, CAT, CAT_OUT, CLONE_CAT, CLONE_CAT_OUT],
        targets=[Across(VIEWS.name, "1e8", "1e4", at_most=2)], full_only=True,
    ),
    Row(
        number="7", title="Results that have to be copied", group="memory", case="forced_copy", keys={"seconds": 0.15},
        rounds=3, variants=SIZES, metric="gb_per_s", better="higher",
        contenders=[RETURNED, INTO, COLUMNS, COPY_LIMIT, COPY_TOGETHER, CAT_OUT] + full(ONE_CORE, CAT),
        # A copy of 64 KiB takes a microsecond: to tell the other core counts, for whoever makes one.
        targets=[Ratio(c.name, COPY_LIMIT.name, at_least=0.9, variant="64 MiB") for c in (RETURNED, INTO, COLUMNS)] +
        [Ratio(c.name, COPY_TOGETHER.name, at_least=0.9) for c in (RETURNED, INTO, COLUMNS)],
    ),
    Row(
        number="7b", title="Results that have to be copied, 1 GiB", group="memory", case="forced_copy",
        keys={"seconds": 1.5, "floats": 2**28}, rounds=3, metric="gb_per_s", better="higher",
        contenders=[RETURNED, INTO, COLUMNS, COPY_LIMIT, COPY_TOGETHER, ONE_CORE, CAT_OUT, CAT], full_only=True,
        targets=[Ratio(c.name, COPY_LIMIT.name, at_least=0.9) for c in (RETURNED, INTO, COLUMNS)],
    ),
    Row(
        number="8", title="A network of 3 layers, 64 x 256, unchanged weights", group="network", case="mlp",
        keys={"seconds": 0.2, **SMALL},
        contenders=[REPLICAS, BLOCKS, TORCH_MODEL, DATA_PARALLEL, KEPT_REPLICAS],
        targets=[
            Ratio(REPLICAS.name, DATA_PARALLEL.name, at_least=12),
            Ratio(BLOCKS.name, DATA_PARALLEL.name, at_least=12),
            Ratio(TORCH_MODEL.name, DATA_PARALLEL.name, at_least=12),
        ],
    ),
    Row(
        number="9", title="A network of 3 layers, 4096 x 1024", group="network", case="mlp",
        keys={"seconds": 0.5, "rows": 4096, "width": 1024}, rounds=3,
        contenders=[ALL_ROWS, openblas(1), openblas(2), MODULE] +
        full(PASSIVE, KEPT_REPLICAS, MODULE_1, DATA_PARALLEL, COLUMNS_EACH),
        targets=[
            Ratio(ALL_ROWS.name, openblas(1).name, at_least=1.96),
            Ratio(ALL_ROWS.name, MODULE.name, at_least=1.25),
        ],
    ),
    Row(
        number="10", title="A network of 3 layers, 64 x 256", group="network", case="mlp", keys={"seconds": 0.2, **SMALL},
        contenders=[BLOCKS, BLOCKS_SPIN, ALL_ROWS, openblas(2), openblas(1), openblas(1, block=8), MODULE] +
        full(COLUMNS_EACH, MODULE_1, KEPT_REPLICAS),
        targets=[Ratio(BLOCKS.name, openblas(2).name, at_least=1)],
    ),
    Row(
        number="10b", title="A network of 3 layers, 256 x 1024", group="network", case="mlp",
        keys={"seconds": 0.3, "rows": 256, "width": 1024}, rounds=3,
        full_only=True,
        contenders=[COLUMNS_EACH, ALL_ROWS, openblas(2), MODULE, openblas(1), MODULE_1, PASSIVE, KEPT_REPLICAS],
    ),
    Row(
        number="11", title="A sweep over a grid", group="functors", case="stencil", keys={"seconds": 0.1},
        variants={"256 x 256": {"size": 256}, "512 x 512": {"size": 512}},
        contenders=[MODEL, MODEL_SPIN, OPENMP, TBB, THRUST, SERIAL] +
        full(OPENMP_REGION, OPENMP_ACTIVE, TBB_AUTO, THRUST_ROWS),
        targets=[Ratio(MODEL.name, OPENMP.name, at_least=1.05, variant="256 x 256")],
    ),
    Row(
        number="11b", title="Monte Carlo, 16 K points", group="functors", case="points",
        keys={"seconds": 0.1, "points": 2**14},
        contenders=[MODEL, MODEL_SPIN, OPENMP, TBB, THRUST, SERIAL] + full(OPENMP_ACTIVE, TBB_AUTO),
        targets=[Ratio(MODEL.name, OPENMP.name, at_least=1.02)],
    ),
    Row(
        number="12", title="A sweep over a grid of 4096 x 4096", group="functors", case="stencil",
        keys={"seconds": 0.3, "size": 4096}, rounds=3,
        contenders=[MODEL, OPENMP, TBB, TBB_AUTO, THRUST] + full(SERIAL, OPENMP_REGION, THRUST_ROWS),
        targets=[Ratio(MODEL.name, peer.name, at_least=0.99) for peer in (OPENMP, TBB, TBB_AUTO, THRUST)],
    ),
    Row(
        number="12b", title="Monte Carlo, 16 M points", group="functors", case="points",
        keys={"seconds": 0.4, "points": 2**24}, rounds=3,
        contenders=[MODEL, OPENMP, TBB, THRUST] + full(TBB_AUTO, SERIAL),
        targets=[Ratio(MODEL.name, peer.name, at_least=0.99) for peer in (OPENMP, TBB, THRUST)],
    ),
    Row(
        number="13", title="What it costs to include", group="include", case="include", keys={"seconds": 0}, rounds=3,
        contenders=[INCLUDE, include("fanout/fwd.hpp", "fwd", ours=True),
                    include("vector, thread, tuple, map", "standard"), include("TBB", "tbb"),
                    include("Thrust", "thrust"), include("Taskflow", "taskflow"), include("stdexec", "stdexec")] +
        full(include("future", "future"), include("ATen", "aten"), include("libtorch", "torch")),
        targets=[Ratio(INCLUDE.name, "vector, thread, tuple, map", at_least=0.5)],
    ),
    Row(
        number="14", title="Scatter and gather of 1e4 floats", group="steady", case="scatter_gather",
        keys={"seconds": 0.02, "floats": 1e4}, rounds=1, metric="allocations",
        contenders=counted(VIEWS, CAT, CLONE_CAT_OUT),
        targets=[Limit(VIEWS.name, "allocations", at_most=0), Limit(VIEWS.name, "faults", at_most=0)],
    ),
    Row(
        number="14b", title="A network of 3 layers, 64 x 256", group="steady", case="mlp",
        keys={"seconds": 0.02, **SMALL}, rounds=1, metric="allocations",
        contenders=counted(BLOCKS, REPLICAS, MODULE, KEPT_REPLICAS, DATA_PARALLEL),
        targets=[Limit(ours.name, key, at_most=0) for ours in (BLOCKS, REPLICAS) for key in ("allocations", "faults")],
    ),
    Row(
        number="14c", title="Scatter and gather of 1e7 floats", group="steady",
        case="scatter_gather", keys={"seconds": 0.02, "floats": 1e7}, rounds=1, metric="faults",
        contenders=counted(VIEWS, CAT), targets=[Limit(VIEWS.name, "faults", at_most=0)],
    ),
    Row(
        number="15", title="Elements one by one, at -O2, in turns with a pointer", group="elements", case="elements",
        keys={"seconds": 0.2}, variants={"100 x 100": {"size": 100}, "1000 x 1000": {"size": 1000}}, metric="over_raw",
        contenders=REACHED + [elements("std::span", "span", ours=False), elements("pointer", "raw", ours=False)],
        targets=[Limit(c.name, "over_raw", at_most=1.3) for c in REACHED],
    ),
]
