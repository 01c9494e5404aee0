# diagnosis: module
def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for batch in group:
            (model.module(batch).mean() / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
