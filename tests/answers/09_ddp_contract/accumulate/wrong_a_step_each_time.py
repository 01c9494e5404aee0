# diagnosis: step_each_time
def train(model, optimizer, batches, k):
    for i, batch in enumerate(batches):
        optimizer.zero_grad()
        if (i + 1) % k:
            with model.no_sync():
                (model(batch).mean() / k).backward()
        else:
            (model(batch).mean() / k).backward()
        optimizer.step()
    return -(-len(batches) // k)
