"""A script for one process, what it comes to, and what ranks did that it was ported to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

RATE, MOMENTUM = 0.05, 0.9
CHECKPOINT = "checkpoint.pt"
FEATURES = 3


def samples(seed: int, number: int) -> tuple[Any, Any]:
    import torch

    made = torch.Generator().manual_seed(seed)
    x = torch.randn(number, FEATURES, generator=made, dtype=torch.float64)
    y = x.sum(1, keepdim=True) + torch.randn(number, 1, generator=made, dtype=torch.float64)
    return x, y


def net(seen: list[list[list[float]]]) -> Any:
    """A linear model that notes the inputs of each forward."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            kind = {"dtype": torch.float64}
            self.layer = nn.utils.skip_init(nn.Linear, FEATURES, 1, **kind)
            nn.init.constant_(self.layer.weight, 0.5)
            nn.init.zeros_(self.layer.bias)

        def forward(self, x: Any) -> Any:
            seen.append(x.tolist())
            return self.layer(x)

    return Net()


@dataclass(frozen=True)
class Script:
    """What the script does in one process. `start`: the step that a checkpoint was made after."""

    seed: int
    number: int
    tests: int
    batch: int
    epochs: int
    start: int
    stop_after: int

    @classmethod
    def of(cls, how: Mapping[str, int]) -> Script:
        return cls(**how)

    @property
    def data(self) -> tuple[Any, Any]:
        return samples(self.seed, self.number)

    @property
    def test(self) -> tuple[Any, Any]:
        return samples(self.seed + 1, self.tests)

    @property
    def per_epoch(self) -> int:
        return -(-self.number // self.batch)

    @property
    def end(self) -> int:
        return min(self.stop_after, self.epochs * self.per_epoch)

    @cached_property
    def batches(self) -> list[list[int]]:
        """The samples of each step, of all epochs and one more."""
        import torch

        found = []
        for epoch in range(self.epochs + 1):
            made = torch.Generator().manual_seed(epoch)
            order = torch.randperm(self.number, generator=made)
            found += [part.tolist() for part in order.split(self.batch)]
        return found

    def checkpoint(self, folder: Path) -> None:
        """Leave what the script leaves after `start` steps."""
        import torch

        model = net([])
        optimizer = self.optimizer(model)
        for part in self.batches[: self.start]:
            self.step([(model, optimizer)], [part])
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state | {"step": self.start}, folder / CHECKPOINT)

    def optimizer(self, model: Any) -> Any:
        import torch

        return torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(self, ranks: Sequence[Any], parts: Sequence[list[int]], how: str = "mean") -> list:
        """One step of every rank with its samples: how gradients are put together. Returns the
        loss of each rank's samples."""
        import torch
        from torch.nn.functional import mse_loss

        x, y = self.data
        losses, gradients = [], []
        for (model, _), part in zip(ranks, parts, strict=True):
            model.zero_grad()
            loss = mse_loss(model(x[part]), y[part])
            loss.backward()
            losses.append(loss.item())
            gradients.append([p.grad.clone() for p in model.parameters()])
        summed = [sum(one) for one in zip(*gradients, strict=True)]
        n = len(ranks)
        divisor = {"mean": n, "divided_again": n * n, "gradient_sum": 1}
        for (model, optimizer), own in zip(ranks, gradients, strict=True):
            used = own if how == "own" else [g / divisor[how] for g in summed]
            for p, g in zip(model.parameters(), used, strict=True):
                p.grad = torch.clone(g)
            optimizer.step()
        return losses

    def run(self, parts: Sequence[Sequence[list[int]]], how: str = "mean", lost: str = "") -> Ranks:
        """What ranks come to that have these samples: by step, then by rank. `lost`: what was not
        taken from the checkpoint."""
        every = []
        for rank in range(len(parts[0])):
            model = net([])
            optimizer = self.optimizer(model)
            for part in self.batches[: self.start]:
                self.step([(model, optimizer)], [part])
            alone = lost == "rank_0_loads" and rank > 0
            if self.start and (lost == "momentum" or alone):
                optimizer = self.optimizer(model)
            every.append((model, optimizer))
        losses = [self.step(every, of, how) for of in parts]
        return Ranks([flat(model) for model, _ in every], losses, every)

    @cached_property
    def right(self) -> Ranks:
        return self.run([[part] for part in self.batches[self.start : self.end]])

    def errors(self, tested: Sequence[int]) -> Any:
        """The absolute errors of the right model on these test samples."""
        import torch

        x, y = (part[list(tested)] for part in self.test)
        with torch.no_grad():
            return (self.right.ranks[0][0](x) - y).abs()


@dataclass(frozen=True)
class Ranks:
    """By rank, the parameters at the end; by step and rank, the losses."""

    parameters: list[Any]
    losses: list[list[float]]
    ranks: list[Any]


def flat(model: Any) -> Any:
    import torch

    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def indices(rows: Sequence[Sequence[float]], known: Sequence[Sequence[float]]) -> list[int]:
    """Which samples these are; -1 for one that is none of them."""
    places = {tuple(row): number for number, row in enumerate(known)}
    return [places.get(tuple(row), -1) for row in rows]


def watched(train: Any, script: Script, folder: Path) -> dict[str, Any]:
    """In a rank: call an answer, and look at what went through the model and what was written."""
    from torch.utils.data import TensorDataset

    if script.start:
        script.checkpoint(folder)
    before = files(folder)
    seen: list[Any] = []
    model = net(seen)
    data, test = (TensorDataset(*part) for part in (script.data, script.test))
    told = train(model, data, test, folder, script.epochs, script.batch, script.stop_after)
    trained, tested = [], []
    x, x_test = script.data[0].tolist(), script.test[0].tolist()
    for rows in seen:
        numbers = indices(rows, x)
        if any(number >= 0 for number in numbers):
            trained.append(numbers)
        else:
            tested += indices(rows, x_test)
    after = files(folder)
    written = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    return {
        "told": told,
        "trained": trained,
        "tested": tested,
        "parameters": flat(model),
        "written": written,
        "saved": saved(folder / CHECKPOINT, list(model.state_dict())),
    }


def files(folder: Path) -> dict[str, Any]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): [path.stat().st_mtime_ns, path.stat().st_ino]
        for path in found
    }


def saved(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """What of a checkpoint the script would go on from; `fault`: why it could not."""
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return {"fault": f"there is no {path.name}"}
    except Exception as error:  # noqa: BLE001  whatever an answer has written
        return {"fault": f"{path.name} cannot be loaded: {str(error).splitlines()[0][:80]}"}
    try:
        held = list(state["model"])
        if held != list(names):
            return {"fault": f'"model" in {path.name} has the names {held}, should be {names}'}
        momentum = [one["momentum_buffer"] for one in state["optimizer"]["state"].values()]
        return {
            "model": torch.cat([state["model"][name].reshape(-1) for name in names]),
            "momentum": torch.cat([one.reshape(-1) for one in momentum]),
            "step": state["step"],
        }
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:
        what = f"{type(error).__name__}: {error}"
        return {"fault": f"the script cannot go on from {path.name}: {what[:80]}"}


def momentum(ranks: Ranks) -> Any:
    """What the optimizer of rank 0 keeps for each parameter, as one tensor."""
    import torch

    model, optimizer = ranks.ranks[0]
    kept = [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]
    return torch.cat([one.reshape(-1) for one in kept])
