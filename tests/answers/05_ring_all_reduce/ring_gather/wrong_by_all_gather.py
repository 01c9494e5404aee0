# diagnosis: other_call
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    longest = max(len(chunk) for chunk in chunks)
    mine = torch.nn.functional.pad(chunks[rank], (0, longest - len(chunks[rank])))
    parts = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(parts, mine)
    for step in range(1, n):
        comes = (rank - step) % n
        chunks[comes].copy_(parts[comes][: len(chunks[comes])])
        after_step()
