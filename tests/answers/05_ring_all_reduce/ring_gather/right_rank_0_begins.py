import torch
import torch.distributed as dist


def receive(chunk, n):
    buffer = torch.zeros(chunk.numel(), dtype=chunk.dtype)
    dist.recv(buffer, src=(dist.get_rank() - 1) % n)
    chunk[:] = buffer


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    order = [(rank - i) % n for i in range(n)]  # own chunk, then what comes
    for goes, comes in zip(order, order[1:]):
        if rank == 0:
            dist.send(chunks[goes], dst=1)
            receive(chunks[comes], n)
        else:
            receive(chunks[comes], n)
            dist.send(chunks[goes], dst=(rank + 1) % n)
        after_step()
