"""gpu-check's own judgement, on made-up runs and, where that is the point, on real ones."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_check, needs, same
from benchmarks.commands import Finished, finish
from benchmarks.gpu_check import Half, judge, ranks_for
from benchmarks.scripts.one_gpu import settings
from ddp_lessons import arguments, course, launch, launcher, scripts
from ddp_lessons.course import Demo
from ddp_lessons.placement import Placement
from ddp_lessons.run import Rank, Record, Run

ROOT = Path(launcher.__file__).parents[1]
CPU = Placement("gloo", ("cpu", "cpu"), ("",), "")


def a_run(*ranks: list[tuple[str, dict]], stdout: str = "", ok: bool = True) -> Run:
    """A run whose ranks made these records: (name, values), in order."""
    made = [
        Rank(
            rank=number,
            device="cpu",
            pid=1,
            parent=1,
            exitcode=0 if ok else 1,
            stdout=stdout,
            stderr="",
            records=tuple(Record(number, name, 0.5, 3, values) for name, values in records),
            finished=ok,
        )
        for number, records in enumerate(ranks)
    ]
    return Run("script.py", len(made), CPU, 1.0, tuple(made), Path("log"))


def kinds(one: Run, two: Run) -> list[str]:
    return [difference.kind for difference in same.differences(one, two)]


ONE = [("mine", {"x": [1, 2.0], "word": "yes"}), ("sum", {"sum": 3})]


def test_equal_runs_have_no_difference():
    assert kinds(a_run(ONE, ONE), a_run(ONE, ONE)) == []


def test_a_different_value_is_named_with_both_sides():
    (found,) = same.differences(a_run(ONE, ONE), a_run(ONE, [ONE[0], ("sum", {"sum": 4})]))
    assert found.kind == "value"
    assert found.text == "rank 1, record 1, sum.sum: 3 on NCCL, 4 on gloo"


def test_a_value_that_only_one_side_has_is_a_different_value():
    (found,) = same.differences(a_run([("sum", {"sum": 3, "more": 1})]), a_run([ONE[1]]))
    assert found.kind == "value"
    assert found.text.endswith("sum.more: 1 on NCCL, nothing on gloo")


def test_a_different_order_within_a_rank_is_told_from_a_different_value():
    assert kinds(a_run(ONE), a_run(ONE[::-1])) == ["order"]


def test_a_record_that_was_not_made_is_told_from_a_different_order():
    assert kinds(a_run(ONE), a_run(ONE[:1])) == ["records"]


def test_a_missing_rank_is_told_from_a_missing_record_whichever_side_lacks_it():
    assert kinds(a_run(ONE, ONE), a_run(ONE)) == ["rank"]
    (found,) = same.differences(a_run(ONE, []), a_run(ONE, ONE))
    assert (found.kind, found.text) == ("rank", "rank 1 is missing on NCCL")


def test_two_runs_without_a_record_are_equal():
    assert kinds(a_run([], []), a_run([], [])) == []


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1.0, 1.0 + 1e-6),
        (1000.0, 1000.001),
        (2, 2.0),
        (0.0, 3e-8),
        ([1, [2.0]], [1, [2.000001]]),
        (float("nan"), float("nan")),
        ({"a": 1, "seconds": 2}, {"a": 1, "seconds": 3}),
        (None, None),
    ],
)
def test_floats_may_differ_by_rounding(one, two):
    assert same.same(one, two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1.0, 1.0001),
        (1_000_000, 1_000_001),
        (True, 1),
        ("a", "b"),
        ("1", 1),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        (0.0, float("nan")),
        ({"a": 1}, {"b": 1}),
        (None, 0),
    ],
)
def test_anything_more_than_rounding_is_a_difference(one, two):
    assert not same.same(one, two)
    assert not same.same(two, one)


@pytest.mark.parametrize(
    "name", ["time", "seconds", "device", "pid", "step_seconds", "Device", "time_of_rank_0"]
)
def test_what_the_machine_and_the_moment_decide_is_left_out(name: str):
    one, two = a_run([("r", {name: 1, "sum": 3})]), a_run([("r", {name: 2, "sum": 3})])
    assert kinds(one, two) == []
    assert same.text_of(one) == same.text_of(two)
    assert same.left_out(one) == [name]


@pytest.mark.parametrize("name", ["timeline", "rank", "steps", "sometimes"])
def test_a_name_that_only_looks_like_it_is_compared(name: str):
    assert kinds(a_run([("r", {name: 1})]), a_run([("r", {name: 2})])) == ["value"]


def test_the_first_line_that_differs_is_shown():
    assert same.unequal_line("a\nb\nc", "a\nx\nc") == "'b' and 'x'"
    assert same.unequal_line("a", "a\nb") == "'' and 'b'"
    assert same.unequal_line("a\nb", "a\nb") == ""


def half(run: Run, demo: Demo, report: str = "") -> Half:
    return Half(run.ok is not demo.fails, report or same.text_of(run), run)


PLAIN = Demo()
GOOD = half(a_run(ONE, ONE), PLAIN)
FAILED = half(a_run(ONE, ONE, ok=False), PLAIN, "script.py: rank 1 failed first")


def test_equal_halves_are_right():
    row = judge("a.py", PLAIN, 2, GOOD, GOOD, "")
    assert row.cells() == ["a.py", "2", "yes", "yes", "yes", "yes", ""]
    assert row.wrong == ()


def test_unequal_records_make_the_check_fail():
    other = half(a_run(ONE, [ONE[0], ("sum", {"sum": 4})]), PLAIN)
    row = judge("a.py", PLAIN, 2, GOOD, other, "")
    assert (row.nccl, row.gloo, row.records, row.text) == (True, True, False, False)
    assert "sum.sum: 3 on NCCL, 4 on gloo" in row.wrong[0]


def test_unequal_text_alone_makes_the_check_fail():
    row = judge("a.py", PLAIN, 2, GOOD, half(a_run(ONE, ONE, stdout="hello\n"), PLAIN), "")
    assert (row.records, row.text) == (True, False)
    assert row.wrong == ("text: '' and 'rank 0 | hello'",)


@pytest.mark.parametrize(("nccl", "gloo"), [(FAILED, GOOD), (GOOD, FAILED), (FAILED, FAILED)])
def test_a_script_that_fails_makes_the_check_fail(nccl: Half, gloo: Half):
    row = judge("a.py", PLAIN, 2, nccl, gloo, "")
    assert (row.nccl, row.gloo) == (nccl.ok, gloo.ok)
    assert (row.records, row.text) == (None, None)
    assert "rank 1 failed first" in row.wrong[0]


def test_a_script_that_runs_on_neither_with_an_unusual_number_of_ranks_is_only_noted():
    row = judge("a.py", PLAIN, 1, FAILED, FAILED, "")
    assert (row.note, row.wrong) == ("not for 1 rank", ())


def test_a_script_that_is_there_to_fail_is_right_if_both_fail_alike():
    demo = Demo(fails=True)
    one, two = (half(a_run(records, ok=False), demo, "rank 0 failed") for records in (ONE, []))
    row = judge("a.py", demo, 1, one, two, "")
    assert row.cells()[2:6] == ["yes", "yes", "-", "yes"]
    assert row.wrong == ()
    other = half(a_run(ONE, ok=False), demo, "rank 1 failed")
    assert judge("a.py", demo, 1, one, other, "").wrong == (
        "text: 'rank 0 failed' and 'rank 1 failed'",
    )
    fine = half(a_run(ONE), demo)
    assert "is there to fail" in judge("a.py", demo, 2, fine, one, "").wrong[0]


@pytest.mark.parametrize(
    ("demo", "gpus", "ranks", "on_nccl"),
    [
        (Demo(), 0, 2, True),  # there is no GPU to refuse
        (Demo(), 1, 1, True),
        (Demo(), 8, 8, True),
        (Demo(), 200, 128, True),
        (Demo(exact=True), 1, 2, False),
        (Demo(exact=True), 8, 2, True),
        (Demo(world_size=1, exact=True), 8, 1, True),
        (Demo(world_size=4, nnodes=2), 3, 2, True),
        (Demo(world_size=4, nnodes=2), 1, 4, False),
    ],
)
def test_a_script_gets_as_many_ranks_as_there_are_gpus_unless_it_needs_its_own_number(
    demo: Demo, gpus: int, ranks: int, on_nccl: bool
):
    found, note = ranks_for(demo, gpus)
    assert found == ranks
    assert (note == "") == on_nccl
    assert on_nccl or f"{gpus} here" in note


def test_a_script_runs_on_both_backends_with_its_logs_kept(tmp_path: Path, monkeypatch):
    """The whole path of a row; both halves are gloo, since "cuda" is turned into "cpu"."""
    asked = []

    def on_the_cpu(script, world_size, *, device, **options):
        asked.append((device, world_size))
        return launch(script, world_size, device="cpu", **options)

    monkeypatch.setattr(gpu_check, "launch", on_the_cpu)
    row = gpu_check.check("00_start_here/add.py", 2, tmp_path)
    assert asked == [("cuda", 2), ("cpu", 2)]
    assert row.cells()[2:6] == ["yes"] * 4, row.wrong
    for device in ("cuda", "cpu"):
        kept = tmp_path / f"00_start_here__add.{device}"
        assert "add.py on 2 ranks: ok" in (kept / "summary.txt").read_text()
        assert len(list(kept.rglob("rank_*/stdout"))) == 2


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch.nn as nn, numpy", {"torch", "numpy"}),
        ("from sklearn.datasets import load_digits", {"sklearn"}),
        ("def f():\n    import late", {"late"}),
        ("try:\n    import extra\nexcept ImportError:\n    extra = None", set()),
        ("try:\n    import needed\nexcept ValueError:\n    pass", {"needed"}),
        ("try:\n    pass\nexcept ImportError:\n    import instead", {"instead"}),
        ("x = 1", set()),
    ],
)
def test_a_scripts_imports_are_read_from_its_source(source: str, names: set[str]):
    assert set(needs.imported(ast.parse(source))) == names


def test_what_a_script_lacks_is_named_also_if_a_file_beside_it_needs_it(tmp_path: Path):
    (tmp_path / "beside.py").write_text("import not_to_be_had, torch\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, os.path\nimport beside\nfrom beside import x\n")
    assert needs.missing(script) == ["not_to_be_had"]


def test_a_script_that_lacks_a_package_is_skipped_by_name(tmp_path: Path, monkeypatch):
    (tmp_path / "00_x").mkdir()
    (tmp_path / "00_x" / "a.py").write_text("import not_to_be_had\n")
    monkeypatch.setattr(scripts, "HERE", tmp_path)
    row = gpu_check.check("00_x/a.py", 1, tmp_path)
    assert row.note == "skipped: no not_to_be_had here"
    assert row.wrong == ()


TWO = "rank 0 of NCCL 2.30.7: sum=[3.0]\nrank 1 of NCCL 2.30.7: sum=[3.0]\n"
REFUSED = """
[rank1]: Traceback (most recent call last):
[rank1]:   File "one_gpu.py", line 1, in <module>
[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, invalid usage
[rank1]: Last error:
[rank1]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


@pytest.mark.parametrize(
    ("done", "says"),
    [
        (Finished(4.2, 0, TWO, False), "NCCL 2.30.7 gave [3.0] after 4.2 s."),
        (Finished(30.0, -15, "rank 0 of NCCL 2.30.7: sum=[3.0]\n", True), "the limit of 30 s"),
        (Finished(3.0, 1, REFUSED, False), "torch.distributed.DistBackendError: NCCL error in"),
        (Finished(3.0, 1, REFUSED, False), "Duplicate GPU detected : rank 1 and rank 0"),
        (Finished(3.0, -6, "terminate called\n", False), "exit code -6 and no exception."),
    ],
)
def test_two_ranks_on_one_gpu_end_in_a_sentence(done: Finished, says: str):
    assert says in gpu_check.outcome(done)


def test_nccl_is_told_to_share_a_gpu_in_the_way_of_its_version():
    assert settings((2, 30, 7), 1)["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
    old = [settings((2, 29, 7), rank) for rank in (0, 1)]
    assert old[0]["NCCL_HOSTID"] != old[1]["NCCL_HOSTID"]
    assert not any("NCCL_MULTI_RANK_GPU_ENABLE" in env for env in old)


def test_a_command_that_does_not_end_is_stopped_at_the_limit():
    forever = "import time; print('begun', flush=True); time.sleep(600)"
    done = finish([sys.executable, "-c", forever], limit=0.5)
    assert done.limited
    assert done.code != 0
    assert done.seconds < 60


def test_the_course_table_names_scripts_that_exist_and_launches_that_are_allowed():
    assert set(course.DEMOS) <= set(course.names())
    for name in course.names():
        demo = course.demo(name)
        arguments.check(demo.world_size, demo.nnodes, 0, "auto", demo.engine, demo.timeout)


def test_an_unknown_script_has_no_entry():
    with pytest.raises(KeyError, match="no_such"):
        course.demo("00_start_here/no_such.py")


BLOCKER = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {blocked} else find(name, path, target)

PathFinder.find_spec = find_spec
"""
BLOCKED = {
    "IPython",
    "ipykernel",
    "ipywidgets",
    "matplotlib",
    "psutil",
    "sklearn",
    "jupyter_client",
}


def test_torch_and_numpy_are_enough_for_the_check_and_for_its_ranks(tmp_path: Path):
    # sitecustomize is read by every Python that inherits PYTHONPATH, so by the ranks as well.
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(blocked=BLOCKED))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert "No module named 'matplotlib'" in python("-c", "import matplotlib").stderr
    only = ["--only", "00_start_here/add.py", "--only", "01_why_ddp/single.py"]
    done = python("-m", "benchmarks.gpu_check", *only, "--logs", str(tmp_path / "logs"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "only the gloo half runs" in done.stdout
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert lines["00_start_here/add.py"] == ["2", "-", "yes", "-", "-"]
    assert "skipped: no sklearn here" in done.stdout
    assert (tmp_path / "logs" / "report.txt").is_file()


# One that fails at once, beside those with an environment of their own.
FAST = ("00_start_here/crash.py",)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if demo.env or name in FAST else pytest.mark.slow)
        for name, demo in ((name, course.demo(name)) for name in course.names())
    ],
)
def test_on_a_machine_without_gpus_no_script_of_the_course_is_wrong(name: str, tmp_path: Path):
    assert gpu_check.check(name, 0, tmp_path).wrong == ()
