# diagnosis: padded
import itertools

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(model, data, test, folder, epochs, batch, stop_after):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch // world_size, sampler=sampler)
    checkpoint, step, losses = folder / "checkpoint.pt", 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    wrapped = DDP(model)
    for epoch in range(step // len(loader), epochs):
        sampler.set_epoch(epoch)
        for x, y in itertools.islice(loader, step % len(loader), None):
            if step == stop_after:
                break
            loss = mse_loss(wrapped(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach() / world_size
            dist.all_reduce(mean)
            losses.append(mean.item())
            step += 1
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state | {"step": step}, checkpoint)
    with torch.no_grad():
        x, y = test[list(DistributedSampler(test, shuffle=False))]
        wrong = (model(x) - y).abs()
        totals = torch.tensor([wrong.sum(), len(wrong)], dtype=torch.float64)
        dist.all_reduce(totals)
    return losses, (totals[0] / totals[1]).item()
