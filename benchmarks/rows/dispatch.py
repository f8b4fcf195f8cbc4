# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows 1 to 5: what it costs to call two bodies at once."""

from driver.model import Contender, Limit, Ratio, Row


def ours(name, contender, **more):
    return Contender(name, "bench_fanout", {"contender": contender}, ours=True, **more)


def peer(name, program, contender="default", **more):
    return Contender(name, "bench_" + program, {"contender": contender}, **more)


BARE = ours("fanout bare", "bare_adaptive")
MODEL = ours("fanout", "model_adaptive")
BARE_SPIN = ours("fanout bare, Spin", "bare_spin")
MODEL_SPIN = ours("fanout, Spin", "model_spin")
BARE_PARK = ours("fanout bare, Park", "bare_park")
MODEL_PARK = ours("fanout, Park", "model_park")

LIBGOMP = peer("libgomp", "openmp")
LIBGOMP_ACTIVE = peer("libgomp, active", "openmp", "active")
LIBGOMP_PASSIVE = peer("libgomp, passive", "openmp", "passive")
LIBOMP = peer("libomp", "libomp")
TBB_FOR = peer("TBB parallel_for", "tbb", "parallel_for")
TBB_INVOKE = peer("TBB parallel_invoke", "tbb", "parallel_invoke")
FOR_EACH = peer("std::for_each(par)", "tbb", "for_each_par")
THRUST = peer("Thrust OMP", "thrust")
TORCH_FOR = peer("libtorch at::parallel_for", "torch", "parallel_for")
TORCH_APPLY = peer("libtorch parallel_apply", "torch", "parallel_apply")
TORCH_DATA = peer("libtorch data_parallel", "torch", "data_parallel")
ATOMIC = peer("atomic::wait", "standard", "atomic_wait")
CONDITION = peer("condition variable", "standard", "condition_variable")
BARRIER = peer("std::barrier", "standard", "barrier")
ASYNC = peer("std::async (unpinned)", "standard", "async")
THREAD = peer("std::jthread (unpinned)", "standard", "thread")
TASKFLOW = peer("Taskflow", "taskflow", "run")
TASKFLOW_ASYNC = peer("Taskflow async", "taskflow", "async")
STDEXEC = peer("stdexec bulk", "stdexec", "bulk")
STDEXEC_ALL = peer("stdexec when_all", "stdexec", "when_all")
KOKKOS = peer("Kokkos", "kokkos")
SERIAL = peer("serial", "serial")

GIVEN = [TASKFLOW, TASKFLOW_ASYNC, STDEXEC, STDEXEC_ALL, KOKKOS]  # where a path to them is given


def only_full(contenders):
    return [Contender(**{**c.__dict__, "full_only": True}) for c in contenders]


def only_in(variants, contender):
    return Contender(**{**contender.__dict__, "only": variants})


PERIOD = {"gap": 1e7, "jitter": 0.02, "seconds": 0.3}

# What is asked of any call however small, at any time: bodies in microseconds after gaps.
TINY = {}
for gap, jitters, bodies in (
    (0, (0,), (0, 0.5, 2, 5, 10, 20, 50)),
    (1e5, (0.02, 0.5), (0, 0.5, 2, 5, 10, 20, 50)),
    (1e6, (0.02, 0.5), (0, 5, 20, 50)),
    (1e7, (0.02, 0.5), (0, 10, 50)),
):
    for jitter in jitters:
        for body in bodies:
            when = "back to back" if gap == 0 else f"{gap / 1e6:g} ms" + (" irregular" if jitter > 0.1 else "")
            TINY[f"{body:g} us, {when}"] = {"body": 1000 * body, "gap": gap, "jitter": jitter,
                                            "seconds": 0.5 if gap > 5e6 else 0.15}
RARE = {f"{body:g} us, 50 ms" + (" irregular" if jitter > 0.1 else ""):
        {"body": 1000 * body, "gap": 5e7, "jitter": jitter, "seconds": 2} for jitter in (0.02, 0.5) for body in (0, 10, 50)}

ROWS = [
    Row(
        number="1", title="Fork-join, empty bodies, back to back", group="fork_join", case="fork_join",
        keys={"seconds": 0.2}, two_threads=True,
        contenders=[BARE_SPIN, MODEL_SPIN, BARE, MODEL, LIBGOMP, LIBOMP, TBB_FOR, FOR_EACH, THRUST, TORCH_FOR, TORCH_DATA,
                    ATOMIC, CONDITION, ASYNC, SERIAL] + GIVEN +
        only_full([LIBGOMP_ACTIVE, LIBGOMP_PASSIVE, TBB_INVOKE, TORCH_APPLY, BARRIER, THREAD]),
        targets=[
            Ratio(BARE_SPIN.name, LIBGOMP.name, at_least=3.5),
            Ratio(MODEL_SPIN.name, LIBGOMP.name, at_least=2),
            Limit(BARE_SPIN.name, "two_threads", at_least=0.99),
            Limit(MODEL_SPIN.name, "two_threads", at_least=0.99),
        ],
    ),
    Row(
        number="1b", title="Fork-join, each body waits for the other to begin", group="fork_join", case="fork_join",
        keys={"seconds": 0.2, "meeting": 1}, two_threads=True, rounds=3,
        contenders=[BARE_SPIN, MODEL_SPIN, LIBGOMP, TBB_FOR] + only_full([LIBOMP, FOR_EACH, TBB_INVOKE, TORCH_FOR]),
    ),
    Row(
        number="2", title="The smallest body with 50 % efficiency, back to back", group="fork_join", case="metg",
        keys={"seconds": 0.25}, label="how long that body is, median",
        contenders=[BARE_SPIN, MODEL_SPIN, BARE, MODEL, LIBGOMP, TBB_FOR, TORCH_FOR] + GIVEN +
        only_full([LIBOMP, FOR_EACH, THRUST, TORCH_APPLY, TORCH_DATA, ATOMIC, LIBGOMP_PASSIVE, CONDITION, BARRIER]),
        targets=[Ratio(BARE_SPIN.name, LIBGOMP.name, at_least=2.5)],
    ),
    Row(
        number="3", title="A call every 10 ms, give or take 2 %, empty bodies", group="idle", case="periodic", keys=PERIOD,
        contenders=[BARE, MODEL, BARE_SPIN, LIBGOMP, LIBGOMP_ACTIVE, TORCH_FOR, TORCH_DATA, ATOMIC, SERIAL] + GIVEN +
        only_full([TBB_FOR, LIBOMP, FOR_EACH, LIBGOMP_PASSIVE, CONDITION, BARRIER, ASYNC, THREAD, BARE_PARK]),
        targets=[
            Ratio(BARE.name, LIBGOMP.name, at_least=50),
            Ratio(BARE.name, TORCH_FOR.name, at_least=50),
            Ratio(MODEL.name, TORCH_DATA.name, at_least=50),
            Limit(BARE.name, "cpu_share", at_most=0.05),
            Limit(MODEL.name, "cpu_share", at_most=0.05),
        ],
    ),
    Row(
        number="3b", title="The same, bodies of 10 us", group="idle", case="periodic", keys={**PERIOD, "body": 10_000},
        metric="overhead_ns", full_only=True,
        contenders=[BARE, MODEL, LIBGOMP, LIBGOMP_ACTIVE, TORCH_FOR, ATOMIC, BARE_SPIN, LIBOMP, TBB_FOR, FOR_EACH,
                    LIBGOMP_PASSIVE, CONDITION, BARE_PARK],
        targets=[Limit(BARE.name, "cpu_share", at_most=0.05)],
    ),
    Row(
        number="3c", title="A call every 10 ms, give or take 20 %", group="idle", case="periodic",
        keys={**PERIOD, "jitter": 0.2}, variants={"10 us": {"body": 10_000}, "100 us": {"body": 100_000}},
        contenders=[BARE, BARE_PARK],
        targets=[Ratio(BARE.name, BARE_PARK.name, at_least=0.97)],  # never slower, up to noise
    ),
    Row(
        number="4", title="Two bodies of 100 us every 10 ms", group="idle", case="periodic",
        keys={**PERIOD, "body": 100_000},
        contenders=[BARE, MODEL, BARE_SPIN, LIBGOMP, LIBGOMP_ACTIVE, TBB_FOR, TORCH_FOR, SERIAL] + GIVEN +
        only_full([FOR_EACH, ATOMIC, LIBOMP, TORCH_DATA, LIBGOMP_PASSIVE, CONDITION, BARRIER, ASYNC, THREAD, BARE_PARK]),
        targets=[
            Limit(BARE.name, "efficiency", at_least=0.97),
            Limit(MODEL.name, "efficiency", at_least=0.97),
            Limit(BARE.name, "cpu_share", at_most=0.05),
            Limit(MODEL.name, "cpu_share", at_most=0.05),
        ],
    ),
    Row(
        number="5", title="A call against the same by one thread, after any gap", group="tiny", case="tiny",
        variants=TINY, metric="excess_median_ns", rounds=3,
        contenders=[MODEL] + only_full([BARE]),
        targets=[
            Limit(MODEL.name, "excess_median_ns", at_most=150),
            Limit(MODEL.name, "excess_p99_in_wakes", at_most=1),
        ],
    ),
    Row(
        number="5b", title="The same, 50 ms apart", group="tiny", case="tiny", variants=RARE, metric="excess_median_ns",
        rounds=3, contenders=[MODEL, BARE], full_only=True,
        targets=[
            Limit(MODEL.name, "excess_median_ns", at_most=150),
            Limit(MODEL.name, "excess_p99_in_wakes", at_most=1),
        ],
    ),
    Row(
        number="5c", title="One second after the last call", group="idle", case="idle", keys={"seconds": 1}, rounds=2,
        metric="cpu_share", contenders=[BARE, LIBGOMP] + only_full([LIBGOMP_ACTIVE]),
        targets=[Limit(BARE.name, "cpu_share", at_most=0.03)],
    ),
]
