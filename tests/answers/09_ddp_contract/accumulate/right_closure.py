import torch


def train(model, optimizer, batches, k):
    steps = 0
    for at in range(0, len(batches), k):
        group = batches[at : at + k]

        def closure():
            optimizer.zero_grad()
            with model.no_sync():
                for b in group[:-1]:
                    (model(b).mean() / len(group)).backward()
            loss = model(group[-1]).mean() / len(group)
            loss.backward()
            return loss

        optimizer.step(closure)
        steps += 1
    return steps
