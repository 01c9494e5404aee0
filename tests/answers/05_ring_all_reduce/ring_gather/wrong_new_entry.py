# diagnosis: replaced
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    for step in range(1, n):
        goes, comes = (rank - step + 1) % n, (rank - step) % n
        parcel = torch.empty_like(chunks[comes])
        send = dist.P2POp(dist.isend, chunks[goes], right)
        receive = dist.P2POp(dist.irecv, parcel, left)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        chunks[comes] = parcel
        after_step()
