"""The same script makes the same records under launch(), launch(engine="torchrun") and plain
torchrun, where they are printed."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ddp_lessons import launch, launcher, scripts
from ddp_lessons.course import Demo, demo, names
from ddp_lessons.run import Run

LIMIT = 120  # seconds
TRIES = 3  # of plain torchrun, whose workers now and then abort when Python shuts down

# Values that lawfully differ between two runs of one script, by a word of their name.
LAWFUL = {"pid", "parent", "port", "host", "path", "time", "times", "seconds", "ms", "started"}

Told = dict[int, list[tuple[str, Mapping[str, Any]]]]  # rank -> its records, in order


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some scripts write into the current folder."""
    monkeypatch.chdir(tmp_path)


def comparable(name: str) -> bool:
    """Whether a script can run on one machine to a good end, and leaves records to compare. One
    that starts its own ranks is no script for torchrun."""
    this, text = demo(name), (scripts.HERE / name).read_text(encoding="utf-8")
    runs = this.nnodes == 1 and not this.fails and this.engine != "python"
    return runs and "ddp_lessons.worker" in text


COMPARABLE = [name for name in names() if comparable(name)]
FIRST = list({name.split("/")[0]: name for name in reversed(COMPARABLE)}.values())[::-1]
REST = [name for name in COMPARABLE if name not in FIRST]


def lawful(name: str) -> bool:
    return not LAWFUL.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def told(records: Iterable[tuple[int, str, Mapping[str, Any]]]) -> Told:
    by_rank: Told = {}
    for rank, name, values in records:
        kept = {key: value for key, value in values.items() if not lawful(key)}
        by_rank.setdefault(rank, []).append((name, kept))
    return by_rank


def told_by(run: Run) -> Told:
    return told((record.rank, record.name, record.values) for record in run.records)


def same(one: Any, other: Any) -> bool:
    """Equal, floats to 1e-6, wherever they stand."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return type(one) is type(other) and one == other


def launched(name: str, engine: str) -> Told:
    this = demo(name)
    return told_by(
        launch(
            name, this.world_size, args=this.args, engine=engine, timeout=LIMIT, env=dict(this.env)
        )
    )


def plain_torchrun(name: str, folder: Path) -> Told:
    """The records that the ranks print, each rank into its own file: `torchrun --redirects 1`."""
    this = demo(name)
    for attempt in range(TRIES):
        logs = folder / f"try_{attempt}"
        done = subprocess.run(
            command(name, this, logs),
            env=launcher.rank_environment(this.world_size, dict(this.env)),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode == 0:
            return printed(logs)
        codes = {int(code) for code in re.findall(r"exitcode\s*: (-?\d+)", done.stderr)}
        # "terminate called without an active exception": gloo's threads at interpreter shutdown.
        assert -signal.SIGABRT in codes, done.stderr
    raise AssertionError(f"{name}: aborted {TRIES} times under plain torchrun")


def command(name: str, this: Demo, logs: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        f"--nproc-per-node={this.world_size}",
        *("--redirects", "1", "--log-dir", str(logs)),
        *(str(scripts.HERE / name), *this.args),
    ]


def printed(logs: Path) -> Told:
    lines = [line for file in logs.rglob("stdout.log") for line in file.read_text().splitlines()]
    records = [json.loads(line) for line in lines if line.startswith('{"rank": ')]
    return told((record["rank"], record["name"], record["values"]) for record in records)


def check_same(one: Told, other: Told) -> None:
    """Equal for every rank: what it recorded, in which order, with which values."""
    assert one.keys() == other.keys()
    for rank in one:
        assert [name for name, _ in one[rank]] == [name for name, _ in other[rank]]
        for (name, values), (_, others) in zip(one[rank], other[rank], strict=True):
            assert same(values, others), f"rank {rank}, {name}: {values} and {others}"


@pytest.mark.parametrize("name", FIRST)
def test_a_script_of_each_lesson_makes_the_same_records_under_plain_torchrun(name, tmp_path):
    check_same(launched(name, "forkserver"), plain_torchrun(name, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_every_other_script_makes_the_same_records_under_plain_torchrun(name, tmp_path):
    check_same(launched(name, "forkserver"), plain_torchrun(name, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARABLE)
def test_every_script_makes_the_same_records_under_the_torchrun_engine(name):
    check_same(launched(name, "forkserver"), launched(name, "torchrun"))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARABLE)
def test_every_script_makes_the_same_records_twice(name):
    check_same(launched(name, "forkserver"), launched(name, "forkserver"))


def test_each_lesson_with_scripts_has_one_that_stands_for_it():
    lessons = {name.split("/")[0] for name in names()}
    assert [name.split("/")[0] for name in FIRST] == sorted(lessons)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({0: [("a", {"x": 1.0})]}, {0: [("a", {"x": 1.00001})]}),
        ({0: [("a", {"x": 1})]}, {0: [("a", {"x": 1.0})]}),
        ({0: [("a", {"x": [1, 2]})]}, {0: [("a", {"x": [2, 1]})]}),
        ({0: [("a", {"x": 1})]}, {0: [("a", {"x": 1})], 1: [("a", {"x": 1})]}),
        ({0: [("a", {}), ("b", {})]}, {0: [("b", {}), ("a", {})]}),
        ({0: [("a", {"x": 1})]}, {0: [("a", {"x": 1, "y": 2})]}),
    ],
)
def test_the_comparison_sees_a_difference(one, other):
    with pytest.raises(AssertionError):
        check_same(one, other)
