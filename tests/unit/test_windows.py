"""The plan for Windows, against a stand-in for its library. It has never run on Windows."""

from __future__ import annotations

import ctypes
import os
import threading
from types import SimpleNamespace

import pytest

from ddp_lessons import lifeline, windows

OWNER, JOB, SELF, HANDLE = 4711, 11, 12, 13


class Function:
    """One function of the stand-in: notes its calls, in order with the others', and answers."""

    def __init__(self, name: str, answer: object, calls: list):
        self.name, self.answer, self.calls = name, answer, calls

    def __call__(self, *given: object) -> object:
        self.calls.append((self.name, *given))
        return self.answer() if callable(self.answer) else self.answer


@pytest.fixture
def system(monkeypatch):
    """What Windows would be asked, and what this process would do; `end` ends the owner."""
    calls, end, exited = [], threading.Event(), threading.Event()
    answers = {
        "CreateJobObjectW": JOB,
        "SetInformationJobObject": 1,
        "AssignProcessToJobObject": 1,
        "GetCurrentProcess": SELF,
        "OpenProcess": HANDLE,
        "WaitForSingleObject": end.wait,
    }
    functions = {name: Function(name, answer, calls) for name, answer in answers.items()}
    monkeypatch.setattr(ctypes, "WinDLL", lambda _: SimpleNamespace(**functions), raising=False)

    def leave(code: int) -> None:
        calls.append(("exit", code))
        exited.set()
        if threading.current_thread() is threading.main_thread():
            raise SystemExit

    monkeypatch.setattr(windows.os, "_exit", leave)
    return SimpleNamespace(calls=calls, end=end, exited=exited, functions=functions)


def asked(system) -> list[tuple]:
    """The calls so far, without the arguments that are addresses."""
    return [tuple(x for x in call if isinstance(x, str | int)) for call in system.calls]


def test_a_rank_puts_itself_in_a_job_that_dies_with_it_and_then_waits_for_the_owner(system):
    windows.hang_on(OWNER)
    system.end.set()
    assert system.exited.wait(60)
    assert asked(system) == [
        ("CreateJobObjectW",),
        ("SetInformationJobObject", JOB, 9, ctypes.sizeof(windows.Limits)),
        ("GetCurrentProcess",),
        ("AssignProcessToJobObject", JOB, SELF),
        ("OpenProcess", 0x00100000, False, OWNER),
        ("WaitForSingleObject", HANDLE, 0xFFFFFFFF),
        ("exit", 1),
    ]


def test_a_rank_whose_owner_has_ended_already_ends_at_once(system):
    system.functions["OpenProcess"].answer = None
    with pytest.raises(SystemExit):
        windows.hang_on(OWNER)
    assert system.calls[-1] == ("exit", 1)


def test_the_structures_are_as_large_as_the_documentation_says():
    if ctypes.sizeof(ctypes.c_void_p) == 8:
        assert ctypes.sizeof(windows.BasicLimits) == 64
        assert ctypes.sizeof(windows.Limits) == 144
        assert windows.BasicLimits.flags.offset == 16


def test_without_fifos_the_lifeline_names_its_holder_and_ranks_hang_on_that(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "mkfifo")
    found = []
    monkeypatch.setattr(windows, "hang_on", found.append)
    cut = lifeline.hold(tmp_path)
    lifeline.hang_on(tmp_path)
    cut()
    assert found == [os.getpid()]
