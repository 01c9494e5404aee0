import threading

import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()

    def turn(step):
        sender = threading.Thread(
            target=dist.send, args=(chunks[(rank - step) % n].clone(), (rank + 1) % n)
        )
        sender.start()
        dist.recv(chunks[(rank - step - 1) % n], (rank - 1) % n)
        sender.join()

    for step in range(n - 1):
        turn(step)
        after_step()
