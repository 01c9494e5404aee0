# diagnosis: whole_tensor
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        whole = torch.cat(chunks)
        incoming = torch.empty_like(whole)
        work = dist.isend(whole, (rank + 1) % n)
        dist.recv(incoming, (rank - 1) % n)
        work.wait()
        comes = (rank - step) % n
        chunks[comes].copy_(incoming.tensor_split(n)[comes])
        after_step()
