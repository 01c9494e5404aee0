# diagnosis: no_wait
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        send = dist.P2POp(dist.isend, chunks[(rank - step + 1) % n], (rank + 1) % n)
        receive = dist.P2POp(dist.irecv, chunks[(rank - step) % n], (rank - 1) % n)
        dist.batch_isend_irecv([send, receive])
        after_step()
