# diagnosis: no_sampler
import itertools

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, RandomSampler


def train(model, data, test, folder, epochs, batch, stop_after):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator()
    loader = DataLoader(data, batch, sampler=RandomSampler(data, generator=order))
    checkpoint, step, losses = folder / "checkpoint.pt", 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    for epoch in range(step // len(loader), epochs):
        order.manual_seed(epoch)
        for x, y in itertools.islice(loader, step % len(loader), None):
            if step == stop_after:
                break
            loss = mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, checkpoint)
    x, y = test.tensors
    with torch.no_grad():
        error = (model(x) - y).abs().mean().item()
    return losses, error
