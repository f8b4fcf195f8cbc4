#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the weak scaling that Horovod has published at 512 GPUs, and of what fanout's reduction would reach there.

The backward pass makes gradients layer by layer, the last layers first. Horovod reduces them by a ring while the backward
pass goes on: as soon as the network is free, it takes all gradients that are there, up to a bucket. A step ends when the
backward pass and the last bucket have ended. What fanout's `pmean` returns is reduced after the backward pass, by slices
that the servers exchange directly. `communicator.buckets()` by NCCL reduces while the backward pass goes on, by a ring, too:
a bucket begins when it is full and the one before has ended. Either way, each byte crosses the link of a server twice.

Two numbers are not published, and are fitted to the three published efficiencies: the share of the link that TCP reaches,
and how much longer all GPUs together compute than one alone, since the slowest one counts. So the three efficiencies test
one thing only: that one network and one delay explain all of them."""

from dataclasses import dataclass

SERVERS = 128     # 128 servers with 4 Pascal GPUs each, 25 Gbit/s: Horovod, docs/benchmarks, and arXiv 1802.05799
GPUS = 4
LINK = 25e9 / 8   # bytes/s
BUCKET = 64e6     # bytes: Horovod's tensor fusion, docs/tensor-fusion: 64 MB by default
FORWARD = 1 / 3   # of a step without communication: the backward pass has two products for each one of the forward pass
PCIE = 12e9       # bytes/s: PCIe 3.0 x16, 16 GB/s less its protocol; fanout's copies to the host and back. Assumed.
HOP = 5e-6        # seconds for one step of the ring. Assumed: most steps are within a server.
AT_ONCE = 6       # include/fanout/mpi/reduction/ordered_reduction.hpp
FIRST, OTHERS = 2**20, 25 * 2**20  # bytes: include/fanout/collective/collective_buckets.hpp
NOTE = 512        # bytes that each shard sends to each other one before a bucket. Sent in turn, AT_ONCE at a time: assumed.


@dataclass(frozen=True)
class Network:
    name: str
    step: float       # seconds of a step of one GPU with 64 images
    layers: tuple     # (millions of parameters, share of the computation), the first layers first
    published: float  # scaling efficiency at 512 GPUs: Horovod, docs/benchmarks


# Parameters and operations of layers: from the definitions, arXiv 1409.1556, 1512.03385 and 1512.00567. Images/s: 154 and
# 142 on one P100 with 64 images in TensorFlow's benchmarks of May 2017 (tensorflow.org/performance/benchmarks), and 1656.82
# on 16 GPUs in Horovod's docs/benchmarks. The blocks of Inception V3 are taken to compute equally long.
VGG = Network("VGG-16", 64 / 154, (
    (0.002, 0.09), (0.037, 1.85), (0.074, 0.92), (0.148, 1.85), (0.295, 0.92), (0.59, 1.85), (0.59, 1.85), (1.18, 0.92),
    (2.36, 1.85), (2.36, 1.85), (2.36, 0.46), (2.36, 0.46), (2.36, 0.46), (102.76, 0.10), (16.78, 0.02), (4.10, 0.004)),
    0.68)
RESNET = Network("ResNet-101", 64 * 16 / 1656.82, (
    (0.01, 0.12),) + ((0.072, 0.22),) * 3 + ((0.305, 0.22),) * 4 + ((1.51, 0.3),) + ((1.117, 0.22),) * 22
    + ((6.04, 0.3),) + ((4.46, 0.22),) * 2 + ((2.05, 0.002),), 0.90)
INCEPTION = Network("Inception V3", 64 / 142, (
    (0.15, 1), (0.26, 1), (0.28, 1), (0.29, 1), (1.15, 1), (1.30, 1), (1.69, 1), (1.69, 1), (2.14, 1), (1.70, 1),
    (5.04, 1), (6.07, 1), (2.05, 0.002)), 0.90)
NETWORKS = (INCEPTION, RESNET, VGG)


def gradients(network):
    """(seconds of the backward pass until they are there, bytes) of each layer's gradients, in the order of that pass."""
    whole = sum(share for _, share in network.layers)
    made, passed = [], 0.0
    for millions, share in reversed(network.layers):
        passed += share / whole * (1 - FORWARD) * network.step
        made.append((passed, 4e6 * millions))
    return made


def horovod(network, bandwidth, delay):
    """The scaling efficiency: the time of a step alone by its time on all GPUs."""
    left = gradients(network)
    free = 0.0
    while left:
        begin = max(free, delay * left[0][0])
        bucket = 0.0
        while left and delay * left[0][0] <= begin and bucket < BUCKET:  # a larger tensor is reduced alone, or in parts
            ready, size = left.pop(0)
            part = min(size, BUCKET - bucket)
            bucket += part
            if part < size:
                left.insert(0, (ready, size - part))
        ranks = SERVERS * GPUS
        free = begin + 2 * (ranks - 1) * (bucket / ranks / bandwidth + HOP)
    computed = delay * network.step
    return network.step / (FORWARD * computed + max(free, (1 - FORWARD) * computed))


def fanout(network, bandwidth, delay):
    """The same for one rank on each server: copies to the host and back, then two agreements and slices."""
    size = 4e6 * sum(millions for millions, _ in network.layers)
    rounds = 2 * 7 + 2 * -(-(SERVERS - 1) // AT_ONCE)  # 7: an exchange of all ranks doubles its reach with each message
    return network.step / (delay * network.step + 2 * size / PCIE + 2 * (SERVERS - 1) / SERVERS * size / bandwidth + rounds * HOP)


def in_buckets(network, bandwidth, delay):
    """The same for buckets by NCCL, whose ring joins all GPUs. No tensor is divided."""
    ranks = SERVERS * GPUS
    notes = GPUS * (ranks - 1) * NOTE / bandwidth + -(-(ranks - 1) // AT_ONCE) * HOP
    free = bucket = 0.0
    least = FIRST
    made = gradients(network)
    for i, (ready, size) in enumerate(made):
        bucket += size
        if bucket < least and i + 1 < len(made):
            continue
        free = max(free, delay * ready) + notes + 2 * (ranks - 1) * (bucket / ranks / bandwidth + HOP)
        bucket, least = 0.0, OTHERS
    computed = delay * network.step
    return network.step / (FORWARD * computed + max(free, (1 - FORWARD) * computed))


def fitted():
    """The share of the link and the delay for which the largest difference is least."""
    shares = [share / 100 for share in range(40, 101)]
    delays = [1 + percent / 200 for percent in range(41)]
    return min(((share, delay) for share in shares for delay in delays), key=lambda at: max(
        abs(horovod(network, at[0] * LINK, at[1]) - network.published) for network in NETWORKS))


def rows():
    share, delay = fitted()
    return share, delay, [(network.name, network.published, horovod(network, share * LINK, delay),
                         fanout(network, share * LINK, delay), in_buckets(network, share * LINK, delay))
                          for network in NETWORKS]


def main():
    share, delay, table = rows()
    print(f"fitted: {100 * share:.0f} % of 25 Gbit/s, all GPUs compute {100 * (delay - 1):.1f} % longer than one")
    print("network       published  model  fanout, not overlapped  fanout, buckets by NCCL")
    for name, published, model, after, within in table:
        print(f"{name:13} {100 * published:8.0f} % {100 * model:4.0f} % {100 * after:21.0f} % {100 * within:22.0f} %")
    wrong = [name for name, published, model, *_ in table if abs(published - model) > 0.03]
    if wrong:
        raise SystemExit(f"not within 3 points: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
