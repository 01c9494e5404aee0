import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss


def train(model, data, test, folder, epochs, batch, stop_after):
    rank, size = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    per_epoch = -(-len(data) // batch)
    path, step, losses = folder / "checkpoint.pt", 0, []
    if path.exists():
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    while step < min(stop_after, epochs * per_epoch):
        epoch, done = divmod(step, per_epoch)
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(epoch))
        part = order[done * batch :][:batch].chunk(size)[rank]
        x, y = data[part]
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        loss.backward()
        for one in [p.grad for p in model.parameters()] + [loss.detach()]:
            dist.all_reduce(one)
            one /= size
        optimizer.step()
        losses.append(loss.item())
        step += 1
    totals = torch.zeros(2, dtype=torch.float64)
    if rank < len(test):
        x, y = test[rank::size]
        with torch.no_grad():
            totals += torch.stack([(model(x) - y).abs().sum(), torch.tensor(len(x))])
    dist.all_reduce(totals)
    if rank == 0:
        optim = optimizer.state_dict()
        torch.save({"model": model.state_dict(), "optimizer": optim, "step": step}, path)
    return losses, float(totals[0] / totals[1])
