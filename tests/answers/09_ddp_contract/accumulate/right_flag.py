def train(model, optimizer, batches, k):
    held = steps = 0
    for i, batch in enumerate(batches):
        end = (i + 1) % k == 0 or i + 1 == len(batches)
        model.require_backward_grad_sync = end
        model(batch).mean().backward()
        held += 1
        if end:
            for p in model.parameters():
                p.grad /= held
            optimizer.step()
            optimizer.zero_grad()
            held = 0
            steps += 1
    return steps
