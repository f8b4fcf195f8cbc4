# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""step_of_ddp.py FILE RANK RANKS STEPS: what step.cpp does, by PyTorch's DistributedDataParallel on Gloo. All ranks name
the same FILE, which is not there yet. The ranks have equal numbers of rows, since DDP weighs ranks equally."""

import math
import sys
import time

import numpy
import torch
import torch.distributed as dist

file, rank, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)

table = torch.from_numpy(numpy.loadtxt("examples/data/digits.csv", delimiter=","))
pixels, labels = table[:1500, :64] / 16, table[:1500, 64].long()


def sine_weights(rows, columns, salt):
    return (torch.sin(salt + torch.arange(rows * columns)) / math.sqrt(columns)).reshape(rows, columns)


network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
with torch.no_grad():
    for layer, salt in ((network[0], 1.0), (network[2], 2.0)):
        layer.weight.copy_(sine_weights(*layer.weight.shape, salt))
        layer.bias.zero_()
model = torch.nn.parallel.DistributedDataParallel(network)
descent = torch.optim.SGD(model.parameters(), 0.5)

row = 0
for step in range(-60, steps):  # what is made at first use is not timed
    if step == 0:
        begin = time.perf_counter()
    rows = min(128, 1500 - row)
    mine = slice(row + rows * rank // ranks, row + rows * (rank + 1) // ranks)
    descent.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(pixels[mine]), labels[mine])
    loss.backward()
    descent.step()
    row = row + rows if row + rows < 1500 else 0
seconds = time.perf_counter() - begin
loss = loss.detach()
dist.all_reduce(loss)
if rank == 0:
    print(f"{steps / seconds:.1f} {loss.item() / ranks:.12f}")
dist.destroy_process_group()
