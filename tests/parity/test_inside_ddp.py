"""The miniature DDP of lesson 08, its buckets and its timeline, on real ranks."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
from models import MODELS

from ddp_lessons import WorkerError, launch, scripts, views
from ddp_lessons.run import Rank, Run
from ddp_lessons.views import exposure

LESSON = "08_inside_ddp"
ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
SAME = 1e-9

# What each rank runs: a model in the miniature DDP beside the same model in torch's.
HARNESS = """
import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

{definitions}


{models}


kind, micro = sys.argv[1], int(sys.argv[2])
torch.set_default_dtype(torch.float64)  # BatchNorm over three samples enlarges rounding
with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    models = [wrap(make(kind, 100 + rank).to(device)) for wrap in ({wrapper}, DDP)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.3) for model in models]
    data = torch.Generator().manual_seed(7)  # the same on every rank
    for step in range({steps}):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for _ in range(micro):
            x, y = torch.randn(12, 6, generator=data), torch.randn(12, 6, generator=data)
            x, y = x[rank::world_size].to(device), y[rank::world_size].to(device)
            for model in models:
                mse_loss(model(x), y).backward()
        both = [list(model.parameters()) for model in models]
        gradients = gap(*([p.grad for p in ps] for ps in both))
        for optimizer in optimizers:
            optimizer.step()
        parameters, buffers = gap(*both), gap(*(model.buffers() for model in models))
        for model in models:  # the broadcast of buffers is no matter of training alone
            model.eval()
            model(x)
            model.train()
        after = gap(*(model.buffers() for model in models))
        record("step", gradients=gradients, parameters=parameters, buffers=max(buffers, after))
    del model, models
    gc.collect()
    dist.barrier()
"""


def definitions(name: str = "mini.py") -> str:
    """The functions and classes of a script of the lesson, as they stand there."""
    text = (scripts.HERE / LESSON / name).read_text(encoding="utf-8")
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = [node for node in ast.parse(text).body if isinstance(node, kinds)]
    assert [node.name for node in found] == ["average", "MiniDDP"]
    return "\n\n\n".join(ast.get_source_segment(text, node) for node in found)


def compared(folder: Path, text: str, kind: str, size: int, micro: int = 1) -> dict[str, float]:
    """The largest gap to torch's DDP over all ranks and steps, of each kind of number."""
    script = folder / "harness.py"
    code = HARNESS.format(models=MODELS, definitions=text, wrapper="MiniDDP", steps=STEPS)
    script.write_text(code, encoding="utf-8")
    run = launch(script, size, args=[kind, str(micro)])
    assert [len(rank.records) for rank in run] == [STEPS] * size
    return {
        name: max(record.values[name] for record in run.records)
        for name in ("gradients", "parameters", "buffers")
    }


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["plain", "frozen", "tied", "norm"])
def test_the_miniature_ddp_is_torchs_at_every_step_on_every_rank(kind, size, tmp_path):
    assert max(compared(tmp_path, definitions(), kind, size).values()) < SAME


def test_gradients_that_pile_up_over_two_backwards_are_averaged_as_torch_does(tmp_path):
    assert max(compared(tmp_path, definitions(), "plain", 2, micro=2).values()) < SAME


BROKEN = {
    "no hook": ("parameter.register_post_accumulate_grad_hook(average)", "pass", "gradients"),
    "the sum": ("parameter.grad /= dist.get_world_size()", "pass", "gradients"),
    "parameters averaged": (
        "dist.all_reduce(parameter.grad)",
        "dist.all_reduce(parameter.data)",
        "parameters",
    ),
    "own starts": ("module.state_dict().values()", "[]", "parameters"),
    "own buffers": ("self.module.buffers()", "[]", "buffers"),
    "buffers in training alone": (
        "self.module.buffers()",
        "self.module.buffers() if self.training else []",
        "buffers",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_comparison_sees_a_broken_miniature(broken, tmp_path):
    old, new, name = BROKEN[broken]
    assert definitions().count(old) == 1
    assert compared(tmp_path, definitions().replace(old, new), "norm", 2)[name] > 1e-3


def at_each_step(name: str, what: str, size: int = 2) -> list[list[list[float]]]:
    run = launch(f"{LESSON}/{name}", size)
    return [[record.values[what] for record in rank.records] for rank in run]


@pytest.mark.parametrize(
    ("name", "equal"),
    [
        ("mini_hooks.py", []),
        ("mini_start.py", ["gradients", "parameters"]),
        ("mini.py", ["gradients", "parameters", "buffers"]),
    ],
)
def test_each_part_of_the_miniature_brings_it_nearer_to_torchs(name, equal):
    for what in ("gradients", "parameters", "buffers"):
        mine, theirs = at_each_step(name, what), at_each_step("by_torch.py", what)
        gap = max(
            abs(a - b)
            for ranks in zip(mine, theirs, strict=True)
            for steps in zip(*ranks, strict=True)
            for a, b in zip(*steps, strict=True)
        )
        assert (gap < 1e-6) is (what in equal), (what, gap)


def events(rank: Rank) -> list[tuple[str, str, int]]:
    """What the profiler saw: in which span, which collective, of how many numbers."""
    found = [record.values for record in rank.records if record.name == "event"]
    return [(one["during"], one["event"].partition(":")[2], one["numbers"]) for one in found]


def test_ddp_communicates_when_it_wraps_in_the_forward_and_in_the_backward_not_in_the_step():
    run = launch(f"{LESSON}/one_step.py", 2, device="cpu")
    for rank in run:
        assert events(rank) == [
            ("wrap", "all_gather", 1),  # the number of parameter tensors
            ("wrap", "broadcast", 46),  # 38 parameters and the 8 float entries of the buffers
            ("wrap", "broadcast", 16),  # the shapes
            ("wrap", "broadcast", 1),  # the counter of BatchNorm, an integer
            ("forward", "broadcast", 8),
            ("forward", "broadcast", 1),
            ("backward", "all_reduce", 38),
        ]
        assert rank.stderr == ""


def test_events_have_the_clock_of_the_records():
    for rank in launch(f"{LESSON}/one_step.py", 2, device="cpu"):
        spans = {r.values["span"]: r.values["times"] for r in rank.records if r.name == "span"}
        for record in rank.records:
            if record.name == "event":
                begin, end = spans[record.values["during"]]
                start, stop = record.values["times"]
                assert begin <= start <= stop <= end + 0.005
                assert rank.joined < start < rank.ended


def test_the_first_step_has_one_bucket_and_then_they_follow_the_backward():
    for rank in launch(f"{LESSON}/buckets.py", 2):
        found = [
            tuple(record.values[k] for k in ("step", "number", "layers", "bytes"))
            for record in rank.records
        ]
        later = [(0, ["last", "c"], 512), (1, ["b", "a"], 512)]
        assert found == [
            (1, 0, ["last", "a", "b", "c"], 1024),
            *((2, *bucket) for bucket in later),
            *((3, *bucket) for bucket in later),
        ]


UNUSED = """
import gc
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from ddp_lessons.worker import process_group, record

with process_group():
    model = nn.Sequential(*[nn.Linear(8, 8, bias=False) for _ in range(4)])
    for find in (False, True):
        ddp = DDP(model, bucket_cap_mb=2 * 256 / 2**20, find_unused_parameters=find)
        for step in range(3):
            ddp(torch.ones(2, 8)).sum().backward()
        told = ddp._get_ddp_logging_data()
        rebuilt = told.get("rebuilt_bucket_sizes")
        record("told", first=told["bucket_sizes"], rebuilt=rebuilt)
        del ddp
        gc.collect()
    dist.barrier()
"""


def test_buckets_are_not_rebuilt_where_unused_parameters_are_looked_for(tmp_path):
    script = tmp_path / "unused.py"
    script.write_text(UNUSED, encoding="utf-8")
    for rank in launch(script, 2):
        plain, find = (record.values for record in rank.records)
        assert (plain["first"], plain["rebuilt"]) == ("1024", "512, 512")
        assert find["first"] == "512, 512"
        assert not find["rebuilt"]


@pytest.fixture(scope="module")
def traced() -> dict[str, Run]:
    caps = {"one": "25", "many": "4"}
    return {
        name: launch(f"{LESSON}/overlap.py", 2, args=[cap], device="cpu")
        for name, cap in caps.items()
    }


def recorded(rank: Rank, name: str) -> list[dict]:
    return [r.values for r in rank.records if r.name == "span" and r.values["span"] == name]


def exposed_by_hand(rank: Rank, step: int) -> float:
    """Seconds of one step in which an all-reduce was under way and nothing was computed: a sweep
    over the moments between which nothing changes, from the raw records alone."""
    forward, backward, update = (
        recorded(rank, name)[step]["times"] for name in ("forward", "backward", "step")
    )
    sent = [s["times"] for s in recorded(rank, "all-reduce")]
    sent = [s for s in sent if backward[0] < s[0] < backward[1]]
    gradients = [g["times"][0] for g in recorded(rank, "gradient")]
    last = [moment for moment in gradients if backward[0] < moment < backward[1]][-1]
    busy = [forward, [backward[0], last], update]
    moments = sorted({moment for stretch in [*busy, *sent] for moment in stretch})
    total = 0.0
    for begin, end in itertools.pairwise(moments):
        middle = (begin + end) / 2
        under_way = any(a < middle < b for a, b in sent)
        computing = any(a < middle < b for a, b in busy)
        total += (end - begin) * (under_way and not computing)
    return total


@pytest.mark.parametrize("name", ["one", "many"])
def test_the_timelines_spans_are_recorded_ones_and_its_exposed_part_is_theirs(name, traced):
    found = exposure.steps(traced[name])
    for rank, drawn in zip(traced[name], found, strict=True):
        starts = [span["times"][0] for span in recorded(rank, "forward")]
        number = starts.index(drawn.forward[0])
        for part, stretch in (("backward", drawn.backward), ("step", drawn.update)):
            assert list(stretch) == recorded(rank, part)[number]["times"]
        all_sent = [tuple(span["times"]) for span in recorded(rank, "all-reduce")]
        assert set(drawn.sent) <= set(all_sent)
        by_hand = exposed_by_hand(rank, number)
        assert by_hand > 0
        assert exposure.length(drawn.exposed) == pytest.approx(by_hand, abs=1e-9)


def test_one_bucket_is_all_exposed_and_of_many_the_last_one(traced):
    for step in exposure.steps(traced["one"]):
        assert len(step.sent) == 1
        assert step.exposed == list(step.sent)
    for step in exposure.steps(traced["many"]):
        assert len(step.sent) == len(step.gradients) == 5
        assert step.sent == tuple(sorted(step.sent))  # one at a time, in the order of the buckets
        assert step.early >= 1
        assert step.exposed[-1][1] == step.sent[-1][1]
        assert step.sent[-1][0] > step.computed


def test_the_timelines_caption_is_the_one_in_the_lesson(traced):
    told = repr(views.timeline({"One bucket": traced["one"], "Many": traced["many"]}))
    assert "1 all-reduce, begun after the last gradient was ready" in told
    assert "5 all-reduces, the first begun while the backward still computed" in told
    assert told.endswith("A delay in the communication hook plays a slow network.")


def test_the_slow_hook_averages_as_ddp_does(tmp_path):
    """The delay changes when the gradients come, not what they are."""
    text = (scripts.HERE / LESSON / "overlap.py").read_text(encoding="utf-8")
    end = "    del model\n"
    assert text.count(end) == 1
    assert text.count("from ddp_lessons.worker import process_group, trace") == 1
    text = text.replace("import process_group, trace", "import process_group, record, trace")
    text = text.replace("    inputs =", "    torch.manual_seed(dist.get_rank())\n    inputs =")
    text = text.replace("    layers =", "    torch.manual_seed(0)\n    layers =")
    text = text.replace(
        end, "    record('end', total=[p.grad.sum().item() for p in model.parameters()])\n" + end
    )
    plain = text.replace("    model.register_comm_hook(None, slow)\n", "")
    assert plain != text
    totals = []
    for number, one in enumerate((text, plain)):
        script = tmp_path / f"hook_{number}.py"
        script.write_text(one, encoding="utf-8")
        totals.append(launch(script, 2, args=["4"], device="cpu").values("total"))
    assert totals[0][0] == totals[0][1]
    for mine, theirs in zip(totals[0], totals[1], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def test_models_of_other_shapes_are_refused_when_they_are_wrapped():
    with pytest.raises(WorkerError) as caught:
        launch(f"{LESSON}/shapes.py", 2)
    assert str(caught.value).startswith("shapes.py: rank 1 failed first, line 15: RuntimeError")
    assert caught.value.run.values("outputs") == [2, 3]
    assert [record.name for record in caught.value.run.records] == ["before wrapping"] * 2


def test_the_folded_lines_complete_the_cell(tmp_path):
    text = (ROOT / "notebooks" / "source" / f"{LESSON}.py").read_text(encoding="utf-8")
    cell = text.partition("# %%ranks -n 2 -o mine\n")[2].partition("# %% [markdown]")[0]
    answer = text.partition("<summary>The two lines</summary>")[2]
    freeze, wrap = re.findall(r"`([^`]+)`", answer)[:2]
    lines = cell.splitlines()
    for begin, new in (("    ...", freeze), ("    model = DDP(", wrap)):
        [place] = [n for n, line in enumerate(lines) if line.startswith(begin)]
        lines[place] = f"    {new}"
    script = tmp_path / "complete.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    assert launch(script, 2).values("buckets") == ["256, 256, 256"] * 2


def test_the_lesson_does_not_hold_the_exercises_answer():
    """08/async_hooks: overlapped averaging with asynchronous hooks."""
    source = ROOT / "notebooks" / "source" / f"{LESSON}.py"
    files = [*(scripts.HERE / LESSON).glob("*.py"), source]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "async_op" not in text and ".wait()" not in text, path.name
