"""The lessons, and how each course script is meant to be run.

Scripts start under a plain `launch(name, 2)` unless DEMOS says otherwise. Names are those that
launch() takes, "NN_slug/name.py".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ddp_lessons import scripts


@dataclass(frozen=True)
class Lesson:
    """One lesson. It runs on NCCL where there are `ranks` GPUs; a part of it that needs more ranks
    than that says so, and runs on the CPU."""

    slug: str
    title: str
    minutes: int
    ranks: int = 2


LESSONS = (
    Lesson("00_start_here", "Start real workers from a notebook", 25),
    Lesson("01_why_ddp", "Train one model on two ranks", 30),
    Lesson("02_process_groups", "Form a process group", 30),
    Lesson("03_rank_and_world_size", "Place ranks on machines and devices", 40),
    Lesson("04_collectives", "Move tensors between ranks", 40),
    Lesson("05_ring_all_reduce", "Build an all-reduce from sends", 40, ranks=4),
    Lesson("06_gradient_averaging", "Average gradients across ranks", 50),
    Lesson("07_distributed_sampler", "Give every rank its samples", 40),
    Lesson("08_inside_ddp", "Look inside DDP", 40),
    Lesson("09_ddp_contract", "Know what DDP does not do", 45),
    Lesson("10_training_template", "Train so that a kill costs nothing", 45),
    Lesson("11_launchers", "Start one script in every way", 40),
)


@dataclass(frozen=True)
class Demo:
    """The arguments that the course gives launch() for one script.

    `fails`: the script is there to raise WorkerError. `exact`: with another number of ranks it is
    about something else; the others run on any number from 1. `on_gpus`: the names of records that
    it makes only where it sees GPUs.
    """

    world_size: int = 2
    args: tuple[str, ...] = ()
    nnodes: int = 1
    engine: str = "forkserver"
    device: str = "auto"
    fails: bool = False
    timeout: float = 60
    exact: bool = False
    on_gpus: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


# Only the exceptions: a script that is not here is a Demo().
DEMOS: Mapping[str, Demo] = MappingProxyType(
    {
        "00_start_here/crash.py": Demo(exact=True, fails=True),
        "01_why_ddp/single.py": Demo(world_size=1, exact=True),
        "01_why_ddp/data_parallel.py": Demo(world_size=1, exact=True, on_gpus=("measured",)),
        "01_why_ddp/bad_column.py": Demo(exact=True, fails=True),
        "02_process_groups/one_short.py": Demo(fails=True, exact=True, timeout=5),
        "03_rank_and_world_size/who.py": Demo(world_size=4, nnodes=2, engine="torchrun"),
        "03_rank_and_world_size/stuck.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        "03_rank_and_world_size/visible.py": Demo(env={"CUDA_VISIBLE_DEVICES": "2,3"}, exact=True),
        "04_collectives/gallery.py": Demo(exact=True),
        # What reduce leaves on the other ranks is each backend's own affair.
        "04_collectives/reduce.py": Demo(world_size=3, device="cpu", exact=True),
        "04_collectives/sub_groups.py": Demo(world_size=4, exact=True),
        "04_collectives/extra_call.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        "05_ring_all_reduce/naive.py": Demo(world_size=4),
        "05_ring_all_reduce/reduce_scatter.py": Demo(world_size=4),
        "05_ring_all_reduce/all_reduce.py": Demo(world_size=4),
        "05_ring_all_reduce/circle.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        # With more ranks than samples in a part, or unequal parts, these show something else.
        "06_gradient_averaging/arrows.py": Demo(exact=True),
        "06_gradient_averaging/broken.py": Demo(world_size=3, exact=True),
        "06_gradient_averaging/splits.py": Demo(exact=True),
        "06_gradient_averaging/one_process.py": Demo(world_size=1, exact=True),
        # By hand only where the samples divide.
        "07_distributed_sampler/by_hand.py": Demo(world_size=5, exact=True),
        "07_distributed_sampler/epochs.py": Demo(args=("8", "2", "set_epoch")),
        "07_distributed_sampler/accuracy.py": Demo(world_size=4),
        "07_distributed_sampler/few.py": Demo(world_size=8),
        # What the profiler sees bears the backend's name.
        "08_inside_ddp/one_step.py": Demo(device="cpu"),
        "08_inside_ddp/overlap.py": Demo(device="cpu"),
        "08_inside_ddp/shapes.py": Demo(exact=True, fails=True),
        # Two samples for two ranks.
        "09_ddp_contract/through_module.py": Demo(exact=True),
        "09_ddp_contract/unfrozen.py": Demo(exact=True),
        "09_ddp_contract/loaded.py": Demo(exact=True),
        "09_ddp_contract/pushed.py": Demo(exact=True),
        "09_ddp_contract/divided.py": Demo(exact=True),
        "09_ddp_contract/buffers.py": Demo(exact=True),
        "09_ddp_contract/unused.py": Demo(fails=True),
        "09_ddp_contract/evaluate.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        "09_ddp_contract/uneven.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        # train.py and altered.py write into the current folder.
        "10_training_template/own_stop.py": Demo(device="cpu", exact=True, fails=True, timeout=5),
        "10_training_template/popular.py": Demo(exact=True, fails=True),
        "10_training_template/seeds.py": Demo(args=("both",)),
        # These start their ranks themselves. restart.py writes into the current folder.
        "11_launchers/spawn.py": Demo(engine="python", device="cpu"),
        "11_launchers/old.py": Demo(engine="python"),
        "11_launchers/restart.py": Demo(exact=True, fails=True),
    }
)


def demo(name: str) -> Demo:
    """How to run the script `name`. Raises KeyError if the course has no such script."""
    if name not in names():
        raise KeyError(f"the course has no script {name!r}")
    return DEMOS.get(name, Demo())


def names() -> list[str]:
    """Every script that is launched by itself, in course order; _names are imported by others."""
    found = (path.relative_to(scripts.HERE) for path in scripts.HERE.glob("[0-9]*/*.py"))
    return sorted(path.as_posix() for path in found if not path.name.startswith("_"))
