def train(model, optimizer, batches, k):
    batches, steps = list(batches), 0
    while batches:
        group, batches = batches[:k], batches[k:]
        optimizer.zero_grad()
        with model.no_sync():
            for batch in group[:-1]:
                loss = model(batch).mean() / len(group)
                loss.backward()
        loss = model(group[-1]).mean() / len(group)
        loss.backward()
        optimizer.step()
        steps += 1
    return steps
