"""What launch() refuses before any process starts, and in which words."""

from __future__ import annotations

import warnings

import pytest

from ddp_lessons.arguments import check, check_surroundings, check_syntax
from ddp_lessons.run import ScriptError


def refused(**changes) -> str:
    usual = {"world_size": 2, "nnodes": 1, "max_restarts": 0, "device": "auto"}
    usual |= {"engine": "forkserver", "timeout": 60}
    with pytest.raises(ValueError) as caught:
        check(**usual | changes)
    return str(caught.value)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, "4", 129, 1000, True, None, [2]])
def test_a_world_size_out_of_range_is_refused_with_the_range(value):
    said = f"world_size is a whole number from 1 to 128, not {value!r}"
    assert refused(world_size=value) == said


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
def test_a_number_of_machines_out_of_range_is_refused(value):
    assert refused(nnodes=value, engine="torchrun").startswith("nnodes is a whole number from 1")


@pytest.mark.parametrize("value", [-1, 1.5, "2", True, 101])
def test_a_number_of_restarts_out_of_range_is_refused(value):
    assert refused(max_restarts=value, engine="torchrun").startswith("max_restarts is a whole")


@pytest.mark.parametrize("value", [0, -5, "60", None, True, float("nan")])
def test_a_limit_that_is_no_time_is_refused(value):
    assert refused(timeout=value) == f"timeout is a number of seconds above 0, not {value!r}"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nnodes": 2}, 'nnodes=2 needs engine="torchrun" or "slurm"'),
        ({"max_restarts": 1}, 'max_restarts=1 needs engine="torchrun"'),
        ({"engine": "mpi"}, "engine is one of forkserver, torchrun, python, slurm, not 'mpi'"),
        ({"device": "gpu"}, "device is auto, cuda or cpu, not 'gpu'"),
        (
            {"world_size": 3, "nnodes": 2, "engine": "torchrun"},
            "world_size=3 ranks do not divide into nnodes=2 equal machines",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(changes, said):
    assert refused(**changes) == said


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        (5, None, "args is a list of the script's arguments, not 5"),
        ((), [1], r"env is a dict of environment variables, not \[1\]"),
        ((), {"A=B": "x"}, "env has 'A=B': 'x', which no environment can hold"),
        ((), {"A": "x\0"}, "env has 'A': "),
        ((), {"": "x"}, "env has '': "),
        ((), {1: "x"}, "env has 1: "),
    ],
)
def test_arguments_and_variables_that_no_process_can_be_given_are_refused(args, env, said):
    with pytest.raises((TypeError, ValueError), match=said):
        check_surroundings(args, env)


def test_arguments_and_variables_may_be_anything_with_a_text():
    check_surroundings("one", None)
    check_surroundings([1, 2.5, None], {"A": 1, "B": ""})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"x = 1\nif x = 2:\n", "some.py, line 2: SyntaxError: invalid syntax. Maybe you meant"),
        (b"def f():\nreturn 1\n", "some.py, line 2: IndentationError: expected an indented block"),
        (b"return 1\n", "some.py, line 1: SyntaxError: 'return' outside function: return 1"),
        (b"x = (\n", "some.py, line 1: SyntaxError: '(' was never closed"),
        (b"\0", "some.py"),
        (b"x = '\xff'\n", "some.py"),
    ],
)
def test_a_script_that_does_not_compile_is_refused_with_its_line(tmp_path, source, said):
    path = tmp_path / "some.py"
    path.write_bytes(source)
    with pytest.raises(ScriptError) as caught:
        check_syntax(path)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_warning_of_the_compiler_is_left_to_the_ranks(tmp_path):
    path = tmp_path / "some.py"
    path.write_text("print('a' is 'a')\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_syntax(path)
