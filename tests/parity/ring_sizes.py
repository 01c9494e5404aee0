"""What the scripts of lesson 05 do to tensors of many sizes and types, in one process group.

Arguments: "float32,int64" 0,1,2. Records the cases in order, and those with a wrong result.
"""

import contextlib
import runpy
import sys

import torch
import torch.distributed as dist

from ddp_lessons import scripts, worker


def given(rank, size, dtype):
    """The tensor that a rank brings: whole numbers, so that sums are exact in any order."""
    generator = torch.Generator().manual_seed(1000 * rank + size)
    return torch.randint(-100, 100, (size,), generator=generator).to(dtype)


def functions(name):
    """What the script defines, as it stands, but that it neither joins a group nor records."""
    real = worker.process_group, worker.record, sys.argv
    worker.process_group = lambda: contextlib.nullcontext(torch.device("cpu"))
    worker.record = lambda *_, **__: None
    sys.argv = [name]
    try:
        return runpy.run_path(str(scripts.HERE / "05_ring_all_reduce" / name))
    finally:
        worker.process_group, worker.record, sys.argv = real


with worker.process_group():
    rank, n = dist.get_rank(), dist.get_world_size()
    naive = functions("naive.py")["all_reduce"]
    half = functions("reduce_scatter.py")["reduce_scatter"]
    whole = functions("all_reduce.py")["all_reduce"]
    dist.barrier()  # what the scripts have sent of their own comes before this
    cases, wrong = [], []
    for dtype in sys.argv[1].split(","):
        for size in map(int, sys.argv[2].split(",")):
            every = [given(r, size, getattr(torch, dtype)) for r in range(n)]
            total = torch.stack(every).sum(0).to(every[0].dtype)
            for name, function in (("naive", naive), ("half", half), ("whole", whole)):
                x = every[rank].clone()
                returned = function(x)
                if name == "half":
                    right = torch.equal(returned[rank], total.tensor_split(n)[rank])
                else:
                    right = torch.equal(x, total)
                cases.append([name, size, x.element_size()])
                if not right:
                    wrong.append([name, dtype, size])
    worker.record("end", cases=cases, wrong=wrong)
    dist.barrier()
