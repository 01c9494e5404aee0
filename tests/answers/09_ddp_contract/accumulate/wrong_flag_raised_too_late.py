# diagnosis: never_synced
def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        model.require_backward_grad_sync = False
        for number, batch in enumerate(group, 1):
            loss = model(batch).mean() / len(group)
            if number == len(group):
                model.require_backward_grad_sync = True
            loss.backward()
            model.require_backward_grad_sync = False
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
