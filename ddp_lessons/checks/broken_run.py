"""The broken run of lesson 06: what its records show, and why a wrong finding does not fit them."""

from __future__ import annotations

from typing import Any

from ddp_lessons.checks import training, values

SCRIPT, RANKS, STEPS, RATE = "06_gradient_averaging/broken.py", 3, 12, 0.1
BUGS = ("sum", "local", "twice", "old", "weights")


def samples() -> list[list[training.Part]]:
    """What the script trains on, by step and rank."""
    import torch

    made = torch.Generator().manual_seed(58623)
    x = (torch.rand(STEPS, 6, 2, generator=made) < 0.4).float()
    y = x @ torch.tensor([[3.0], [1.0]]) + torch.randint(-2, 3, (STEPS, 6, 1), generator=made)
    return [
        [(x[step, rank::RANKS], y[step, rank::RANKS]) for rank in range(RANKS)]
        for step in range(STEPS)
    ]


class Evidence:
    """What the ranks of the broken run recorded. Steps count from 1, as in the records."""

    def __init__(self, run: Any):
        import torch

        def table(name: str) -> Any:  # steps x ranks x numbers
            by_rank = [[record.values[name] for record in rank.records] for rank in run]
            return torch.tensor(by_rank, dtype=torch.float64).transpose(0, 1)

        self.loss, self.local, self.gradient, self.parameters = map(
            table, ("loss", "local", "gradient", "parameters")
        )
        self.mean = self.local.mean(1)

    def is_mean(self, rank: int, step: int) -> bool:
        return training.close(self.gradient[step - 1, rank], self.mean[step - 1])

    def would_be(self, bug: str, rank: int, step: int) -> Any:
        """The gradient that a rank would have recorded in a step with that bug."""
        local, mean = self.local[step - 1], self.mean[step - 1]
        old = self.gradient[step - 2, rank] if step > 1 else 0 * mean
        every = {
            "sum": local.sum(0),
            "local": local[rank],
            "twice": mean / RANKS,
            "old": old,
            "weights": mean,
        }
        return every[bug]

    def first(self) -> tuple[str, int, int]:
        """The bug, the rank and the step: the first gradient that is not the mean."""
        for step in range(1, STEPS + 1):
            for rank in range(RANKS):
                if not self.is_mean(rank, step):
                    now = self.gradient[step - 1, rank]
                    made = [b for b in BUGS if training.close(now, self.would_be(b, rank, step))]
                    return made[0], rank, step
        raise AssertionError(f"{SCRIPT} is not broken")

    def gap(self, step: int) -> float:
        """The largest difference of any parameter between ranks after a step."""
        now = self.parameters[step - 1]
        return float((now.amax(0) - now.amin(0)).max())

    def against(self, bug: str, rank: int, step: int) -> tuple[str, str]:
        """Why a finding does not fit, in numbers, and the mistake; two empty texts if it fits."""
        true_bug, true_rank, true_step = self.first()
        now = values.told(self.gradient[step - 1, rank])
        at = f"step {step}, rank {rank}: the gradient {now} is the mean of the local gradients"
        if step != true_step:
            highest = self.loss.max()
            if self.loss[step - 1, rank] == highest:
                return f"{at}, and the loss {float(highest):.2f} the highest of all", "loss"
            if step > true_step:
                before = f"by {self.gap(step - 1):.2f} after step {step - 1}"
                return f"{at}, but the ranks' weights differ before it, {before}", "later"
            return f"{at}, and after that step the weights of all ranks are equal", "earlier"
        if rank != true_rank:
            return f"{at}, as it should be", "innocent_rank"
        if bug != true_bug:
            would = values.told(self.would_be(bug, rank, step))
            told = f"step {step}, rank {rank}: with {bug!r} the gradient would be {would}"
            return f"{told}; in the records it is {now}", "drift" if bug == "local" else "other_bug"
        return "", ""


def well_formed(found: Any) -> bool:
    """Whether that is (bug, rank, step), each of them one that there is."""
    if not isinstance(found, tuple | list) or len(found) != 3:
        return False
    bug, rank, step = found
    whole = all(type(number) is int for number in (rank, step))
    return bug in BUGS and whole and 0 <= rank < RANKS and 1 <= step <= STEPS
