# diagnosis: one_backward
def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        loss = sum(model(batch).mean() for batch in group) / len(group)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
