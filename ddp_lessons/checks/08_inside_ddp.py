"""The exercise of lesson 08."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ddp_lessons.checks import delivery, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault

if TYPE_CHECKING:
    from ddp_lessons.run import Call

STEPS = 3
RATE = 2**-10


class AsyncHooks(Exercise):
    key = "08_inside_ddp/async_hooks"
    minutes = 20
    names = ("overlap",)
    requirements = {
        "result": "after finish(), every gradient is the mean over the ranks, at each step: what "
        "torch's DDP gives",
        "waits": "when finish() returns, each all-reduce has been waited for, and until its wait "
        "nobody has written into its tensor",
        "overlap": "each gradient has one all-reduce, which starts during the backward, as soon as "
        "that gradient is ready; nobody waits before the last one has started",
    }
    mistakes = {
        "no_wait": "An all-reduce that has started is not done. Its result is there after wait() "
        "on the Work that the call returned: keep each Work until finish().",
        "written_early": "From the start of an all-reduce to its wait the tensor belongs to the "
        "network: what is written there meanwhile is lost, or mixes with the sum. Divide before "
        "the call, or after the wait for this very tensor.",
        "parameter": "A hook of register_post_accumulate_grad_hook gets the parameter. The "
        "gradient is its .grad.",
        "copy": "The all-reduce works in place, on the tensor that it gets. A sum in another "
        "tensor than p.grad does not come into p.grad by itself.",
        "sum": "An all-reduce adds up. The mean is the sum divided by the number of ranks.",
        "divided_twice": "This is the mean divided once more by the number of ranks: divide in one "
        "place only.",
        "from_before": "Something of the step before is still in place. Empty what you keep for "
        "finish() when finish() is done with it.",
        "divided_by_two": "This is the sum divided by 2, whatever the number of ranks: ask "
        "dist.get_world_size().",
        "other_call": "Each gradient has one all-reduce: the call that leaves the sum on all "
        "ranks.",
        "missed": "A parameter without an all-reduce keeps each rank's own gradient. "
        "model.parameters() has them all.",
        "too_many": "A hook stays registered: register once, in overlap(), and leave the rest to "
        "the hooks.",
        "waits_early": "A hook that waits stops the backward until the message has come, as in the "
        "lesson's miniature. With async_op=True the call returns a Work at once; wait for it in "
        "finish().",
        "after_backward": "What starts after the backward has nothing left to hide behind. Start "
        "it in a hook, when the gradient is ready.",
        "late_start": "A gradient that waits for later ones loses the time in which it could "
        "travel. Start its all-reduce in the hook of its own parameter.",
        "not_async": "Without async_op=True, all_reduce waits itself and returns None.",
        "too_early": "p.grad is None until the gradient is ready. Hooks of register_hook run "
        "before that, hooks of modules may; register_post_accumulate_grad_hook's run after.",
        "frozen": "A frozen parameter gets no gradient, and takes no hook: look at "
        "p.requires_grad first.",
        "no_gradient": "The .grad of a parameter that is frozen, or took no part in this step, is "
        "None. Only what a hook has started needs an end.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        def case(told: str, n: int, **how: Any) -> Case:
            return Case(f"{n} {'rank' if n == 1 else 'ranks'}, {told}", n, {"seed": seed, **how})

        return [
            case("two layers of one weight each", 2, width=1, defined="ab", used="ab"),
            case("two layers", 1, width=2, defined="ab", used="ab"),
            case("three layers, used in another order than defined", 2, defined="cab", used="abc"),
            case("a frozen layer, and one used twice", 3, defined="abc", used="abcb", frozen="a"),
            case("a layer that step 2 does without", 4, defined="abc", used="abc", idle="b"),
        ]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        import torch

        model = build(case)
        events: list[list[Any]] = [["backward", -1]]
        for number, p in enumerate(model.parameters()):
            if p.requires_grad:
                ready = ["ready", number]
                p.register_post_accumulate_grad_hook(lambda _, ready=ready: events.append(ready))
        delivery.when_waited_for(list(model.parameters()), events)
        finish = answer.overlap(model)
        if not callable(finish):
            return {"finish": values.tell(finish)}
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        steps = []
        for step in range(STEPS):
            optimizer.zero_grad()
            events.append(["backward", step])
            loss(model, case, bench.rank, step).backward()
            events.append(["finish", step])
            finish()
            events.append(["end", step])
            steps.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
            optimizer.step()
        return {"steps": steps, "events": events}

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        for rank, result in enumerate(results):
            if "finish" in result:
                none = result["finish"] is None
                what = "None" if none else f"{values.told(values.read(result['finish']))}"
                kind = "nothing_returned" if none else "wrong_type"
                told = f"rank {rank}: overlap(model) returned {what}, not a function"
                yield Fault("result", told, kind)
                return
        local, mean = reference(case)
        names = [name for name, _ in build(case).named_parameters()]
        for step in range(STEPS):
            for rank, result in enumerate(results):
                seen = delivery.Seen(
                    result["events"], step, names, f"rank {rank}, step {step + 1}: "
                )
                kept = [local[step][rank], mean[step], result["steps"][step]]
                calls = run[rank].calls
                faults = [*seen.waits(), *wrong(seen, case.world_size, *kept, calls)]
                if case.world_size > 1:
                    faults += seen.overlap([call.asynchronous for call in calls])
                yield from faults
                if faults:
                    return

    def failed(self, case: Case, run: Any, kind: str) -> str:
        failure = next((rank.failure for rank in run if rank.failure), None)
        if kind != "raises" or not failure:
            return ""
        if "doesn't require gradient" in failure.message:
            return "frozen"
        if "'NoneType' object has no attribute 'wait'" in failure.message:
            return "not_async"
        source = failure.frames[-1][3] if failure.frames else ""
        if "NoneType" in failure.message and ".grad" in source:
            without = case.values.get("frozen") or case.values.get("idle")
            return "no_gradient" if without else "too_early"
        return ""


def wrong(
    seen: delivery.Seen, n: int, local: list, mean: list, got: list, calls: Sequence[Call]
) -> Iterator[Fault]:
    """The first gradient that is not the mean, and what it is instead."""
    if n > 1 and not seen.calls:
        others = ", ".join(sorted({call.op for call in calls}))
        told = f"{seen.where}no all-reduce was made{', but ' * bool(others)}{others}"
        yield Fault("result", told, "other_call" if others else "no_work")
        return
    for number, (mine, want, have) in enumerate(zip(local, mean, got, strict=True)):
        if want is None and have is None:
            continue
        told = f"{seen.where}the gradient of {seen.names[number]} is {values.told(have)}, "
        told += f"should be {values.told(want)}"
        if want is None or have is None or values.type_fault(have, want):
            yield Fault("result", told, "")
            return
        if values.same(have, want):
            continue
        called = {call[3] for call in seen.works.values()}
        other = any(call[2] == "other" for call in seen.works.values())
        own = values.same(have, mine) or values.same(have, mine / n)
        first = seen.where.endswith("step 1: ")
        if own and other:
            mistake = "copy"
        elif own and number not in called:
            mistake = "missed"
        elif values.same(have, want * n):
            mistake = "sum"
        elif values.same(have, want * n / 2):
            mistake = "divided_by_two"
        elif values.same(have, want / n):
            mistake = "divided_twice" if first else "from_before"
        else:
            mistake = ""
        yield Fault("result", told, mistake)
        return


def build(case: Case) -> Any:
    """The model, alike on all ranks and in the parent: whole numbers for weights."""
    import torch
    from torch import nn

    how = case.values
    width, made = how.get("width", 2), torch.Generator().manual_seed(how["seed"])
    model = nn.Module()
    for name in how["defined"]:
        # Draws no random numbers, so that none of the process's are used up.
        layer = nn.utils.skip_init(nn.Linear, width, width, bias=False, dtype=torch.float64)
        shape = [width, width]
        weight = torch.ones(shape) if width == 1 else torch.randint(1, 4, shape, generator=made)
        layer.load_state_dict({"weight": weight})
        model.add_module(name, layer.requires_grad_(name not in how.get("frozen", "")))
    return model


def loss(model: Any, case: Case, rank: int, step: int) -> Any:
    import torch

    how = case.values
    if how.get("width") == 1:
        x = torch.tensor([[1 + rank + 10 * step + how["seed"] % 1000]])
    else:
        made = torch.Generator().manual_seed(how["seed"] * 1000 + rank * 10 + step)
        x = torch.randint(1, 10, [1, 2], generator=made)
    x = x.double()
    for name in how["used"]:
        if step != 1 or name not in how.get("idle", ""):
            x = getattr(model, name)(x)
    return x.sum()


def reference(case: Case) -> tuple[list, list]:
    """The gradients of each step: local[step][rank] and mean[step], each a list by parameter, with
    None where a parameter has none."""
    import torch

    model = build(case)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    local, mean = [], []
    for step in range(STEPS):
        here = []
        for rank in range(case.world_size):
            one = copy.deepcopy(model)
            loss(one, case, rank, step).backward()
            here.append([p.grad for p in one.parameters()])
        local.append(here)
        each = zip(*here, strict=True)
        mean.append([None if of[0] is None else sum(of) / len(of) for of in each])
        for p, gradient in zip(model.parameters(), mean[-1], strict=True):
            p.grad = gradient
        optimizer.step()
    return local, mean


EXERCISES = (AsyncHooks(),)
