"""A small model that trains on every rank, its gradients averaged by an answer, and the same steps
in one process that has all the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

RATE = 0.05  # the learning rate
SAME = 1e-5  # float32 on the ranks against float64 here, after a few steps

Part = tuple[Any, Any]  # inputs and labels of one rank


def model(hidden: int = 1, dtype: Any = None) -> Any:
    """Two layers without bias: inputs of zeros have gradients of zeros. Starts from ones."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):  # layers draw weights, even if nobody wants them
        made = nn.Sequential(nn.Linear(2, hidden, bias=False), nn.Linear(hidden, 1, bias=False))
    for parameter in made.parameters():
        nn.init.ones_(parameter)
    return made.to(dtype or torch.float32)


def parts(seed: int, counts: Sequence[int]) -> list[Part]:
    """What each rank gets in one step: as many samples as `counts` says, small integers, no input
    of zero."""
    import torch

    made = torch.Generator().manual_seed(seed)
    sign = torch.randint(0, 2, (sum(counts), 2), generator=made) * 2 - 1
    x = (torch.randint(1, 4, sign.shape, generator=made) * sign).float()
    y = torch.randint(-3, 4, (len(x), 1), generator=made).float()
    return list(zip(x.split(list(counts)), y.split(list(counts)), strict=True))


def backward(net: Any, part: Part) -> None:
    """Put the gradient of the part's mean loss into .grad; None where there are no samples."""
    from torch.nn.functional import mse_loss

    net.zero_grad(set_to_none=True)
    x, y = (one.to(next(net.parameters())) for one in part)
    if len(x):
        mse_loss(net(x), y).backward()


def gradient(net: Any) -> Any:
    """All of .grad as one tensor, None if one is missing."""
    import torch

    grads = [parameter.grad for parameter in net.parameters()]
    return None if any(g is None for g in grads) else torch.cat([g.flatten() for g in grads])


def step(net: Any, rate: float) -> None:
    """One step of SGD with what stands in .grad."""
    import torch

    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.grad is not None:
                parameter -= rate * parameter.grad


def train(
    net: Any, mine: Sequence[Part], average: Callable[[Any, int], Any], rate: float
) -> list[dict[str, Any]]:
    """On a rank: for each step the gradient after average(net, number of samples), and whether
    that changed a parameter or returned something."""
    import torch

    found = []
    for part in mine:
        backward(net, part)
        before = [parameter.detach().clone() for parameter in net.parameters()]
        returned = average(net, len(part[0]))
        pairs = zip(before, net.parameters(), strict=True)
        moved = any(not torch.equal(old, new) for old, new in pairs)
        now = gradient(net)
        found.append(
            {
                "gradient": None if now is None else now.detach().clone(),
                "moved": moved,
                "returned": returned is not None,
            }
        )
        step(net, rate)
    return found


def reference(
    net: Any, steps: Sequence[Sequence[Part]], rate: float
) -> Iterator[tuple[list[Any], Any]]:
    """For each step, in the dtype of `net`: each rank's own gradient, zeros where it has no
    samples, and the gradient of all samples in one batch."""
    import torch
    from torch.nn.utils import parameters_to_vector

    for every in steps:
        own = []
        for part in every:
            backward(net, part)
            found = gradient(net)
            own.append(
                0 * parameters_to_vector(net.parameters()).detach() if found is None else found
            )
        backward(net, tuple(torch.cat(one) for one in zip(*every, strict=True)))
        yield own, gradient(net)
        step(net, rate)


def close(got: Any, want: Any) -> bool:
    """Whether a gradient from a rank is that one, but for rounding."""
    import torch

    return got is not None and torch.allclose(got.double(), want, rtol=SAME, atol=SAME)


def off(results: Sequence[Any], number: int, want: Any) -> list[int]:
    """The ranks whose gradient after a step is not the wanted one."""
    found = [rank[number]["gradient"] for rank in results]
    return [rank for rank, got in enumerate(found) if not close(got, want)]


def alike(got: Any, made: Any) -> bool:
    return got is None if made is None else close(got, made)


def match(got: Sequence[Any], candidates: Iterator[tuple[str, Sequence[Any]]]) -> str:
    """The mistake that would give each rank what it has, "" if none would, or more than one."""
    names = {name for name, made in candidates if all(map(alike, got, made))}
    return names.pop() if len(names) == 1 else ""
