# diagnosis: order
def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        with model.no_sync():
            for batch in group:
                (model(batch).mean() / len(group)).backward()
        model(group[-1]).mean().backward()  # the synchronising one
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
