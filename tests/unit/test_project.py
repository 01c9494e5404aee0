"""The project's own files: one lock, one front door, nothing that ties it to a machine."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("lab", "test", "nbgrader")
# What PyPI's CUDA build of torch brings along; the lock leaves its versions to torch.
WITH_TORCH = re.compile(r"nvidia-|cuda-|triton$")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lock() -> dict[str, str]:
    """The lock's lines, parsed: name -> version."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            found[str(canonicalize_name(name))] = version
    return found


def stated() -> list[Requirement]:
    """Every requirement of pyproject.toml."""
    optional = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(line for name in EXTRAS for line in optional[name])]
    return [Requirement(line) for line in lines]


def installed(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def needed() -> set[str]:
    """Every package that the installed course needs here, directly or not."""
    found: set[str] = set()
    todo = [(str(canonicalize_name(r.name)), frozenset(r.extras)) for r in stated()]
    seen = set(todo)
    while todo:
        name, extras = todo.pop()
        here = installed(name)
        if here is None:
            continue
        found.add(name)
        for line in here.requires or []:
            requirement = Requirement(line)
            wanted = [{"extra": extra} for extra in ("", *extras)]
            if requirement.marker and not any(requirement.marker.evaluate(w) for w in wanted):
                continue
            step = (str(canonicalize_name(requirement.name)), frozenset(requirement.extras))
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return found


# A GPU machine brings its own torch and does not install the course.
own_environment = pytest.mark.skipif(
    installed("ddp-lessons") is None, reason="the course is not installed in this environment"
)


def test_every_line_of_the_lock_is_one_public_version():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.!]+", line), line
    assert lock()["torch"] == "2.13.0"


def test_every_requirement_is_locked_at_a_version_that_meets_it():
    locked = lock()
    for requirement in stated():
        version = locked.get(str(canonicalize_name(requirement.name)))
        assert version, f"{requirement} is not in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement}, locked at {version}"


@own_environment
def test_the_installed_environment_is_the_locked_one():
    wrong = {}
    for name, version in lock().items():
        here = installed(name)  # None: this platform does not need it
        if here and Version(here.version).public != Version(version).public:
            wrong[name] = f"{here.version}, locked at {version}"
    assert not wrong, f"run `make check` to install what the lock says: {wrong}"


@own_environment
def test_what_the_requirements_need_in_turn_is_locked_too():
    names = {name for name in needed() if not WITH_TORCH.match(name)}
    assert len(names) > len(stated())
    assert names - set(lock()) - {"setuptools"} == set()


def test_the_conda_file_is_a_front_door_and_states_no_version_but_pythons():
    front = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert set(front) == {"name", "channels", "dependencies"}
    *conda, pip = front["dependencies"]
    assert re.fullmatch(r"python=3\.\d+", conda[0])
    assert conda[1:] == ["pip"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[lab,test]"]}
    assert conda[0].removeprefix("python=") in project()["requires-python"]


def test_python_from_3_11_on_is_welcome():
    assert project()["requires-python"] == ">=3.11"


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


# Each is written so that this file does not hold what it looks for.
TIED = {
    "a folder of one machine": r"(?<![\w.~}])/(?:work|root|opt/py\w+|mnt|home/\w+|Users/\w+)/",
    "a temporary folder": r"(?<![\w.~}])/t[m]p/\w",
    "a package index": r"(?:index|find)[-](?:url|links)|pypi[.]org|files[.]pythonhosted",
    "a server with its port": r"https?://(?:localhost|127\.0\.0\.1|\[::1\]):\d",
}
EXEMPT = {"tests/lessons/test_limits.py"}  # shows such paths to the rule that refuses them


def test_no_file_is_tied_to_a_machine():
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if name in EXEMPT:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [
            f"{name}:{text.count(chr(10), 0, match.start()) + 1} holds {what}: {match.group()}"
            for what, pattern in TIED.items()
            for match in re.finditer(pattern, text)
        ]
    assert not found, "\n".join(found)


def test_nothing_that_a_build_leaves_behind_is_tracked():
    junk = re.compile(r"(^|/)(\.venv|__pycache__|\.ipynb_checkpoints|[^/]+\.egg-info|build)(/|$)")
    names = [path.relative_to(ROOT).as_posix() for path in tracked()]
    assert [name for name in names if junk.search(name)] == []


def test_make_leaves_an_environment_alone_that_venv_is_only_a_link_to(tmp_path):
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    theirs = tmp_path / "theirs"
    (theirs / "bin").mkdir(parents=True)
    (theirs / "installed").write_text("another clone\n")
    (theirs / "bin" / "python").touch()
    (tmp_path / ".venv").symlink_to(theirs)
    stand_in = tmp_path / "python"
    make_venv = "mkdir -p .venv/bin; cp python .venv/bin/python; touch .venv/made"
    stand_in.write_text(f'#!/bin/sh\ncase "$2" in venv) {make_venv};; esac\n')
    stand_in.chmod(0o755)
    command = ["make", "site", f"PYTHON={stand_in}"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert not (tmp_path / ".venv").is_symlink() and (tmp_path / ".venv" / "made").exists()
    assert sorted(path.name for path in theirs.iterdir()) == ["bin", "installed"]
