from contextlib import ExitStack


def chunks(items, k):
    group = []
    for item in items:
        group.append(item)
        if len(group) == k:
            yield group
            group = []
    if group:
        yield group


def train(model, optimizer, batches, k):
    for group in chunks(batches, k):
        with ExitStack() as held:
            held.enter_context(model.no_sync())
            for i, batch in enumerate(group):
                if i == len(group) - 1:
                    held.close()
                loss = model(batch).mean()
                (loss / len(group)).backward()
        optimizer.step()
        for p in model.parameters():
            p.grad = None
    return len(list(chunks(batches, k)))
