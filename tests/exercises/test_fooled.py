"""No answer is passed by anything but its work, and each that breaks the check is told what it did.

Where the limit is: an answer runs in the process that examines it. One that sets out to read that
process's memory finds the token, and the case with its seed, and can put together both the right
numbers and a record of its own that says nothing of what it changed. It cannot make calls that it
did not make, and it gains nothing that the right numbers would not give it. A check is there to
find mistakes; it is no prison.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import fooling
import pytest
from fooling import Fooling
from processes import gone, in_groups, marked

from ddp_lessons import CheckError, Verdict, check, launch
from ddp_lessons.checks import answers, examine, exercise

KEY = "04_collectives/all_gather"
KEYS = exercise.keys()
ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 40  # the design says 20, and a loaded machine needs room
MOST_LINES, MOST_CHARACTERS = 45, 8_000  # of a verdict


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    launch(examine.__file__, 1)


@pytest.fixture
def mark(monkeypatch) -> Iterator[str]:
    """What an answer starts bears it in its environment. None of that is left afterwards."""
    mark = f"fault-test-{uuid.uuid4()}"
    monkeypatch.setenv("FAULT_TEST", mark)
    yield mark
    gone(lambda: marked(mark) - {os.getpid()}, 5)


@pytest.fixture
def failing(tmp_path: Path, mark: str) -> Callable[..., Verdict]:
    """Check an answer that must not pass: its verdict, which is short, came in time, and left no
    process."""

    def failing(text: str, key: str = KEY, forged: bool = False) -> Verdict:
        path = tmp_path / "answer.py"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        began = time.monotonic()
        with pytest.raises(CheckError) as caught:
            check(key, path)
        assert time.monotonic() - began < MOST_SECONDS
        verdict = caught.value.verdict
        assert verdict.told
        # An exercise is ready for whatever a function returns, not for a forged record.
        assert forged or "cannot be compared" not in str(caught.value)
        assert len(repr(verdict).splitlines()) < MOST_LINES
        assert len(repr(verdict)) < MOST_CHARACTERS
        pids = {rank.pid for run in verdict.runs for rank in run if rank.pid}
        gone(lambda: in_groups(pids), 5)
        return verdict

    return failing


def each(found: list[Fooling]) -> pytest.MarkDecorator:
    marks = {True: [pytest.mark.slow], False: []}
    rows = [pytest.param(one, id=one.name, marks=marks[one.slow]) for one in found]
    return pytest.mark.parametrize("one", rows)


def says(verdict: Verdict, mistake: str, told: str) -> None:
    assert verdict.mistake == mistake, repr(verdict)
    assert told in repr(verdict)
    assert bool(verdict.usual) == bool(mistake)


@each(fooling.ENDS)
def test_an_answer_that_does_not_return(one: Fooling, failing, monkeypatch):
    monkeypatch.setattr(exercise.find(KEY), "timeout", 4)
    says(failing(one.text), one.mistake, one.told)


@pytest.mark.slow
def test_an_answer_that_is_right_and_far_too_slow(failing, monkeypatch):
    monkeypatch.setattr(exercise.find(KEY), "timeout", 15)
    slow = Fooling("", "time.sleep(4.5); return right(x)", "", "")
    says(failing(slow.text), "too_slow", "were over in launch")


@each(fooling.RESULTS)
def test_an_answer_that_returns_what_it_should_not(one: Fooling, failing):
    says(failing(one.text), one.mistake, one.told)


@each(fooling.STATE)
def test_an_answer_that_changes_what_is_not_its_own(one: Fooling, failing):
    says(failing(one.text), one.mistake, one.told)


@pytest.mark.parametrize("name", fooling.FILES)
def test_a_file_that_is_no_answer(name: str, failing):
    text, mistake, told = fooling.FILES[name]
    says(failing(text), mistake, told)


# It takes the token out of the frames that called it, and writes the record itself.
STOLEN = f"""{fooling.RIGHT}
def all_gather(x):
    frame = sys._getframe()
    while "token" not in frame.f_locals:
        frame = frame.f_back
    found = frame.f_locals
    found["write"]("graded", token=found["token"], result={{result}}, damaged=[], changed=[])
    {{end}}
"""


@pytest.mark.parametrize("end", ["os._exit(0)", "return right(x)", "sys.exit(0)"])
def test_a_stolen_token_does_not_make_wrong_numbers_right(end: str, failing):
    told = '[{"tensor": ["int64", [2], [1, 1]]}] * dist.get_world_size()'
    verdict = failing(STOLEN.format(result=told, end=end), forged=True)
    assert not verdict.passed


@pytest.mark.parametrize("result", ["5", '{"tensor": 5}', '{"a": 1, "b": 2}', "[{}]", "None"])
def test_a_stolen_token_cannot_break_the_check(result: str, failing):
    assert not failing(STOLEN.format(result=result, end="sys.exit(0)"), forged=True).passed


def test_children_of_a_right_answer_end_with_it(tmp_path, mark):
    path = tmp_path / "answer.py"
    start = "subprocess.Popen(['sleep', '600'], start_new_session=True)"
    path.write_text(Fooling("children", f"{start}; return right(x)", "", "").text)
    assert check(KEY, path).passed  # and the mark finds none of them


SAME = ["raises", "one_rank_leaves", "one_rank_skips", "kills_itself"]
SAME += [pytest.param(name, marks=pytest.mark.slow) for name in ("loops", "one_rank_sleeps")]


@pytest.mark.parametrize("name", SAME)
def test_the_same_answer_is_told_the_same_each_time(name: str, failing, monkeypatch):
    monkeypatch.setattr(exercise.find(KEY), "timeout", 4)
    text = next(one.text for one in fooling.ENDS if one.name == name)
    assert len({repr(failing(text)) for _ in range(3)}) == 1


def test_checks_beside_each_other_do_not_disturb_each_other(tmp_path):
    texts = {
        "right": Fooling("", "return right(x)", "", "").text,
        "raises": Fooling("", "raise ValueError('alone')", "", "").text,
        "dtype": Fooling("", "torch.set_default_dtype(torch.float64)", "", "").text,
    }
    said: dict[str, list[str]] = {name: [] for name in texts}

    def work(name: str) -> None:
        path = tmp_path / f"{name}.py"
        path.write_text(texts[name])
        for _ in range(3):
            try:
                said[name].append("passed" if check(KEY, path).passed else "")
            except CheckError as error:
                said[name].append(error.verdict.mistake)

    threads = [threading.Thread(target=work, args=[name]) for name in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {"right": "passed", "raises": "raises", "dtype": "changed_state"}
    assert said == {name: [mistake] * 3 for name, mistake in expected.items()}


# For every exercise: the solution with its functions in a wrapper that does something else, too.
WRAPPED = """

def _wrapped(_solution):
    import os, sys
    def answer(*args, **kwargs):
        import torch, torch.distributed as dist
        from ddp_lessons.worker import record
        last = int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1
        {before}
        result = _solution(*args, **kwargs)
        {after}
        return result
    return answer

for _name in {names!r}:
    globals()[_name] = _wrapped(globals()[_name])
"""

# Instead of the work: a function may be there for what it does, so what it returns says nothing.
ANYTHING = {
    "nothing": "return None",
    "success": f"print('passed'); {fooling.FORGED}; return 'passed'",
    "the last rank nothing": "if last: return None",
    "an empty list": "return []",
    "an empty dict": "return {}",
    "a number": "return 0",
    "nan": "return float('nan')",
    "a tensor of nan": "return torch.full((2,), float('nan'))",
    "itself": "return answer",
    "a long list": "return list(range(1_000_000))",
    "its arguments": "return args",
}
FAST = ("nothing",)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=[] if one in FAST else pytest.mark.slow) for one in ANYTHING],
)
@pytest.mark.parametrize("key", KEYS)
def test_no_exercise_passes_an_answer_that_does_nothing_and_returns(key: str, kind: str, failing):
    verdict = failing(wrapped(key, ANYTHING[kind], "pass"), key)
    assert verdict.mistake != "raises" or "line" in verdict.told[0], repr(verdict)


@pytest.mark.parametrize("key", KEYS)
def test_no_exercise_passes_an_answer_that_leaves(key: str, failing):
    verdict = failing(wrapped(key, "pass", "os._exit(0)"), key)
    assert verdict.mistake == "left_early"


@pytest.mark.parametrize("key", KEYS)
def test_no_exercise_passes_an_answer_that_changes_the_process(key: str, failing):
    verdict = failing(wrapped(key, "pass", "torch.equal = lambda *_: True"), key)
    assert verdict.mistake == "changed_state"


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_no_exercise_passes_an_answer_that_never_returns(key: str, failing):
    verdict = failing(wrapped(key, "while True: pass", "pass"), key)
    assert verdict.mistake == "endless"


def wrapped(key: str, before: str, after: str) -> str:
    """The solution of an exercise that does something before and after each call."""
    solution = ROOT / "solutions" / f"{key.partition('/')[0]}.ipynb"
    text = answers.from_notebook(key, solution).read_text(encoding="utf-8")
    return text + WRAPPED.format(before=before, after=after, names=exercise.find(key).names)
