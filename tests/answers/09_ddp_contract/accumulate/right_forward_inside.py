def train(model, optimizer, batches, k):
    """The backward may be outside: the forward decides."""
    n = len(batches)
    for i, batch in enumerate(batches):
        size = min(k, n - i // k * k)
        if i % k == 0:
            optimizer.zero_grad(set_to_none=False)
        if i % k < size - 1:
            with model.no_sync():
                loss = model(batch).mean()
        else:
            loss = model(batch).mean()
        loss.div(size).backward()
        if i % k == size - 1:
            optimizer.step()
    return -(-len(batches) // k)
