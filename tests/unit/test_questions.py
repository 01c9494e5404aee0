"""The questions of every lesson: their form, and what questions() keeps, refuses and shows."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tags import parsed

from ddp_lessons import course, folders, objectives, questions
from ddp_lessons.checks import answers
from ddp_lessons.objectives import sheets
from ddp_lessons.views import question_list

ROOT = Path(__file__).resolve().parents[2]
LESSON = "06_gradient_averaging"
TOPICS = [objectives.find(lesson.slug) for lesson in course.LESSONS]
EVERY = [(topic.lesson, one) for topic in TOPICS for one in topic.questions]
SHEET = Path("answers/questions", f"{LESSON}.json")
KEY = "".join(one.right for one in objectives.find(LESSON).questions)
WRONG = "".join("b" if x == "a" else "a" for x in KEY)

of_each_lesson = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.lesson)


@pytest.fixture(autouse=True)
def notebook(tmp_path, monkeypatch):
    """A folder of its own, in a kernel that has written nothing yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(answers, "_written", {})
    return tmp_path


def stored() -> dict:
    return json.loads(SHEET.read_text(encoding="utf-8"))


# Their form


def test_every_lesson_has_questions_and_nothing_else_has():
    assert objectives.lessons() == [lesson.slug for lesson in course.LESSONS]


@of_each_lesson
def test_a_lesson_has_three_questions_with_three_objectives(topic: objectives.Topic):
    assert len(topic.questions) == 3
    assert len({one.objective for one in topic.questions}) == 3
    for one in topic.questions:
        assert 3 <= len(one.choices) <= 4
        assert one.right in one.letters
        assert len(set(one.choices)) == len(one.choices)
        assert one.because.endswith(".")


@of_each_lesson
def test_a_question_is_read_in_a_moment(topic: objectives.Topic):
    for one in topic.questions:
        assert len(" ".join([one.ask, *one.choices]).split()) <= 65, one.ask
        assert len(one.because.split()) <= 25, one.because


def test_the_right_letter_varies_over_the_course():
    keys = ["".join(one.right for one in topic.questions) for topic in TOPICS]
    assert len(set(keys)) == len(keys)
    assert all(len(set(key)) > 1 for key in keys)
    letters = Counter("".join(keys))
    assert set(letters) == set(objectives.LETTERS)
    assert max(letters.values()) <= len("".join(keys)) / 3


def test_the_right_choice_does_not_stand_out_by_its_length():
    lengths = [([len(choice) for choice in one.choices], one) for _, one in EVERY]
    right = [(sizes, len(one.choice(one.right))) for sizes, one in lengths]
    for most in (max, min):
        assert sum(size == most(sizes) for sizes, size in right) <= len(EVERY) / 2


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w ]", " ", text.lower()).split())


@of_each_lesson
def test_no_question_stands_in_its_lesson_already(topic: objectives.Topic):
    source = (ROOT / "notebooks/source" / f"{topic.lesson}.py").read_text(encoding="utf-8")
    text = plain(source.replace("\n# ", " "))
    for one in topic.questions:
        for sentence in re.split(r"(?<=[.?!]) ", one.ask):
            if len(sentence.split()) > 6:
                assert plain(sentence) not in text, sentence
        assert plain(one.because) not in text


@of_each_lesson
def test_the_example_of_how_to_answer_is_not_the_answer(topic: objectives.Topic):
    example = re.search(r'before="([^"]+)"', repr(questions(topic.lesson, before=None)))[1]
    assert topic.right(topic.letters(example)) < 3


def stems(text: str) -> set[str]:
    """The first letters of the words that say what a text is about."""
    words = {word[:4] for word in plain(text).split() if len(word) > 3}
    return words - {"each", "ever", "find", "rank", "that", "what", "whic", "with"}


@of_each_lesson
def test_each_objective_takes_up_a_part_of_the_lessons_promise(topic: objectives.Topic):
    source = (ROOT / "notebooks/source" / f"{topic.lesson}.py").read_text(encoding="utf-8")
    promise = re.search(r"^# You will (.*)$", source, re.M)[1]
    for one in topic.questions:
        assert stems(one.objective) & stems(promise), one.objective


# What is kept


def test_without_letters_the_questions_are_shown_and_nothing_is_kept(notebook):
    for when in ("before", "after"):
        shown = repr(questions(LESSON, **{when: None}))
        for one in objectives.find(LESSON).questions:
            assert one.ask in shown
            assert all(choice in shown for choice in one.choices)
            assert one.because not in shown
        assert f'{when}="' in shown
    assert questions(LESSON).when == "before"
    assert list(notebook.iterdir()) == []


def test_what_is_shown_without_letters_does_not_depend_on_what_was_kept():
    shown = [repr(questions(LESSON, **{when: None})) for when in ("before", "after")]
    questions(LESSON, before=WRONG)
    questions(LESSON, after=KEY)
    assert shown == [repr(questions(LESSON, **{when: None})) for when in ("before", "after")]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("bca", "bca"),
        ("BCA", "bca"),
        (" b c a ", "bca"),
        ("b, c, a.", "bca"),
        (["b", "c", "a"], "bca"),
        (("B", " c", "a"), "bca"),
        ("b-a", "b?a"),
        ("???", "???"),
        (["b", None, "-"], "b??"),
    ],
)
def test_letters_may_be_written_in_many_ways(given, kept):
    questions(LESSON, before=given)
    assert stored()["before"] == kept


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("bc", "'bc' has 2"),
        ("bcab", "'bcab' has 4"),
        ("", "'' has 0"),
        ([], r"\[\] has 0"),
        ("bxa", "'x' is no choice of question 2, which has a to c"),
        ("abd", "'d' is no choice of question 3, which has a to c"),
        (["ab", "c", "a"], "'ab' is no choice of question 1"),
        (["", "c", "a"], None),
        (123, "no int"),
        (True, "no bool"),
        ({"b", "c", "a"}, "no set"),
        ([1, 2, 3], "no list"),
    ],
)
def test_letters_that_answer_nothing_are_refused_and_not_kept(given, told, notebook):
    if told is None:  # an empty entry is what somebody leaves who does not know
        assert questions(LESSON, before=given).letters == "?ca"
        return
    with pytest.raises(ValueError, match=told) as caught:
        questions(LESSON, before=given)
    shown = " ".join(caught.value._render_traceback_()[0].split())  # it is broken into lines
    assert shown.endswith(str(caught.value))
    assert list(notebook.iterdir()) == []


@pytest.mark.parametrize(
    ("lesson", "near"),
    [
        ("06_gradient_averagin", LESSON),
        ("06", LESSON),
        ("gradient averaging", LESSON),
        ("Ring_all_reduce", "05_ring_all_reduce"),
        ("zzz", None),
        (None, None),
        (6, None),
        ("../06_gradient_averaging", LESSON),
    ],
)
def test_an_unknown_lesson_names_the_nearest(lesson, near):
    with pytest.raises(ValueError, match="has questions") as caught:
        questions(lesson, before=None)
    assert (f"Did you mean {near}?" in str(caught.value)) == bool(near)


def test_before_and_after_in_one_call_are_refused():
    with pytest.raises(ValueError, match="not both"):
        questions(LESSON, before="bca", after="bca")


def test_before_does_not_say_what_is_right():
    told = {repr(questions(LESSON, before=x)).partition("\n")[0] for x in (KEY, WRONG, "???")}
    assert len(told) == 1  # the same head for all
    for given in (KEY, WRONG):
        shown = repr(questions(LESSON, before=given))
        assert "because" not in shown
        assert not re.search(r"\b(right|wrong)\b", shown.replace("says what is right", ""))
    assert "The end of the lesson asks again" in shown


def test_before_may_change_until_after_is_given():
    questions(LESSON, before=WRONG)
    questions(LESSON, before="???")
    assert stored()["before"] == "???"
    questions(LESSON, after=KEY)
    said = questions(LESSON, before=KEY)
    assert "Not kept" in repr(said)
    assert "? ? ?" in repr(said)
    assert stored()["before"] == "???"
    assert "Not kept" not in repr(questions(LESSON, before="???"))


def test_before_is_not_taken_after_the_answers_were_seen():
    assert "from before the lesson" in repr(questions(LESSON, after=KEY))
    assert "Not kept" in repr(questions(LESSON, before=KEY))
    assert stored()["before"] == ""


def test_after_judges_each_question_and_tells_the_gain():
    mixed = KEY[0] + WRONG[1] + "?"
    questions(LESSON, before=WRONG[:2] + KEY[2])
    shown = repr(questions(LESSON, after=mixed))
    first, second, third = objectives.find(LESSON).questions
    assert shown.startswith(f"{LESSON}: before 1 of 3, after 1 of 3\n")
    assert re.search(rf"your {KEY[0]}, right +{re.escape(first.choice(KEY[0]))}\n", shown)
    assert re.search(rf"your {WRONG[1]}, wrong +{re.escape(second.choice(WRONG[1]))}\n", shown)
    assert re.search(rf"{second.right} is right +{re.escape(second.choice(second.right))}\n", shown)
    assert re.search(r"your \? +you do not know\n", shown)
    assert all(one.because in shown for one in (first, second, third))


def test_the_first_answers_after_the_lesson_count():
    questions(LESSON, before=WRONG)
    questions(LESSON, after=WRONG)
    again = repr(questions(LESSON, after=KEY))
    assert "after 3 of 3" in again
    assert "Not kept" in again
    assert stored()["after"] == WRONG
    assert "Not kept" not in repr(questions(LESSON, after=WRONG))


def test_a_removed_file_begins_anew():
    questions(LESSON, before=WRONG)
    questions(LESSON, after=KEY)
    SHEET.unlink()
    assert "Kept in" in repr(questions(LESSON, before="???"))


def test_every_lesson_has_a_file_of_its_own(notebook):
    for topic in TOPICS:
        questions(topic.lesson, before="???")
    names = sorted(path.relative_to(notebook).as_posix() for path in notebook.rglob("*.json"))
    assert names == [f"answers/questions/{topic.lesson}.json" for topic in TOPICS]
    assert [path for path in notebook.rglob("*") if path.is_file()] != []
    assert len([path for path in notebook.rglob("*") if path.is_file()]) == len(TOPICS)


def test_what_is_kept_holds_letters_and_no_name():
    questions(LESSON, before="???")
    assert set(stored()) == {"lesson", "version", "number", "before", "after"}
    text = SHEET.read_text(encoding="utf-8")
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text


def test_nothing_is_shared_between_two_readers(tmp_path, monkeypatch):
    numbers = set()
    for reader in ("ada", "bob"):
        (tmp_path / reader).mkdir()
        monkeypatch.chdir(tmp_path / reader)
        monkeypatch.setattr(answers, "_written", {})
        assert not SHEET.exists()
        questions(LESSON, before="???")
        numbers.add(stored()["number"])
    assert len(numbers) == 2


# Where it cannot be kept


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "3", '{"a": 1}', "[" * 100_000, '{"lesson": "x"}', "\udcff"],
    ids=["empty", "cut", "list", "number", "foreign", "deep", "half", "bytes"],
)
def test_a_file_that_is_no_sheet_is_left_alone_and_named(content):
    SHEET.parent.mkdir(parents=True)
    SHEET.write_bytes(was := content.encode("utf-8", "surrogateescape"))
    for said in (questions(LESSON, before=KEY), questions(LESSON, after=KEY)):
        assert f"Not kept: {SHEET.as_posix()}" in repr(said)
        assert "Remove that file" in repr(said)
    assert "after 3 of 3" in repr(said)
    assert SHEET.read_bytes() == was


@pytest.mark.parametrize(
    "change",
    [{"before": "xyz"}, {"before": "ab"}, {"after": None}, {"lesson": "00_start_here"}],
    ids=str,
)
def test_a_sheet_that_was_written_by_hand_and_wrongly_is_no_sheet(change):
    questions(LESSON, before="???")
    SHEET.write_text(json.dumps(stored() | change), encoding="utf-8")
    assert "Not kept" in repr(questions(LESSON, before=KEY))


def test_a_topic_has_another_version_where_a_letter_means_something_else_and_only_there():
    topic = TOPICS[0]
    one = topic.questions[0]

    def version(**change: object) -> str:
        changed = dataclasses.replace(one, **change)
        return objectives.Topic(topic.lesson, (changed, *topic.questions[1:])).version

    assert version() == version(because="So.", objective="other") == topic.version
    others = [
        version(ask="Other?"),
        version(choices=one.choices[::-1]),
        version(right="b" if one.right == "a" else "a"),
    ]
    assert len({topic.version, *others}) == 4


def test_answers_to_other_questions_do_not_count_any_more():
    questions(LESSON, before=KEY)
    SHEET.write_text(json.dumps(stored() | {"version": "older", "before": "zz"}), encoding="utf-8")
    shown = repr(questions(LESSON, after=KEY))
    assert "These questions have changed" in shown
    assert shown.startswith(f"{LESSON}: after 3 of 3\n")
    assert stored()["before"] == ""


def blocked(folder: Path) -> None:
    """No file can be written here, not by root either: a file stands where the folder would be."""
    (folder / "answers").write_text("in the way")


def test_a_folder_that_takes_no_file_keeps_answers_until_the_kernel_ends(notebook):
    blocked(notebook)
    assert "only until this kernel ends" in repr(questions(LESSON, before=WRONG))
    assert repr(questions(LESSON, after=KEY)).startswith(f"{LESSON}: before 0 of 3, after 3 of 3")
    assert "restart the kernel" in repr(questions(LESSON, before=KEY))
    assert (notebook / "answers").read_text() == "in the way"


def test_where_nothing_can_be_written_at_all_a_sentence_says_so(notebook, monkeypatch):
    blocked(notebook)
    (notebook / "session").write_text("in the way, too")
    monkeypatch.setattr(folders, "session", lambda: notebook / "session")
    assert "Not kept, here or in a temporary folder" in repr(questions(LESSON, before=KEY))
    shown = repr(questions(LESSON, after=KEY))
    assert shown.startswith(f"{LESSON}: after 3 of 3")
    assert "Not kept" in shown


def test_a_write_that_fails_half_way_leaves_the_old_sheet(monkeypatch, notebook):
    questions(LESSON, before=WRONG)

    def full(self, *args, **kwargs):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert "Not kept" in repr(questions(LESSON, before=KEY))
    assert stored()["before"] == WRONG
    assert [path.name for path in SHEET.parent.iterdir()] == [SHEET.name]


def test_a_sheet_is_replaced_and_never_half_written(notebook):
    """Who reads meanwhile, or has the file open, sees the old sheet or the new one."""
    questions(LESSON, before=WRONG)
    with SHEET.open(encoding="utf-8") as old:
        questions(LESSON, before="???")
        assert json.load(old)["before"] == WRONG
    assert stored()["before"] == "???"


MANY = """
import sys
from ddp_lessons import questions
sys.stdin.readline()
for _ in range(40):
    said = repr(questions("{lesson}", before=sys.argv[1]))
    assert "Kept in" in said, said
"""


def test_two_notebooks_at_once_leave_a_whole_sheet(notebook):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", MANY.format(lesson=LESSON)]
    running = [
        subprocess.Popen([*command, x], stdin=subprocess.PIPE, text=True, env=environment)
        for x in ("aaa", "bbb")
    ]
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    assert [one.wait(timeout=120) for one in running] == [0, 0]
    assert stored()["before"] in ("aaa", "bbb")
    assert len(list(SHEET.parent.iterdir())) == 1


def test_one_process_at_a_time_changes_a_sheet():
    pytest.importorskip("fcntl")
    import fcntl

    with sheets.alone():
        fd = os.open(SHEET.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


def test_the_folder_of_the_answers_is_ignored_by_git():
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"/notebooks/{answers.FOLDER}/" in lines


# What is shown


def cases() -> dict[str, dict]:
    return {
        "asked before": {"before": None},
        "asked after": {"after": None},
        "kept before": {"before": WRONG},
        "judged": {"after": KEY[:2] + "?"},
        "refused": {"before": KEY},
    }


def test_the_html_says_what_the_text_says():
    for given in cases().values():
        said = questions(LESSON, **given)
        page = parsed(re.sub(r"<style>.*?</style>", "", question_list.asked(said), flags=re.S))
        text = re.sub(r"\s+", "", re.sub(r"^\d\. ", "", repr(said), flags=re.M))
        assert text.replace("`", "") == re.sub(r"\s+", "", page.text)
        kinds = Counter(tag for tag, _ in page.found)
        assert kinds["ol"] == 1
        assert kinds["ul"] == 3
        assert not {"script", "style"} & set(kinds)
        assert all("id" not in attributes for _, attributes in page.found)


def test_nothing_in_a_question_becomes_markup():
    one = objectives.Question("o", "Is 1 < 2 & `a<b>`?", ("<i>yes</i>", "no", "&amp;"), "a", "So.")
    topic = objectives.Topic("99_x", (one,) * 3)
    from ddp_lessons.objectives.asking import Asked

    page = parsed(question_list.asked(Asked(topic, "before")))
    assert {tag for tag, _ in page.found} == {
        *("style", "div", "p", "strong", "ol", "li", "ul", "span", "code")
    }
    assert "Is 1 < 2 & a<b>?" in page.text
    assert "<i>yes</i>" in page.text


def test_text_has_no_colour_of_its_own():
    """So it is as legible as the notebook's own text, in each theme."""
    html = question_list.asked(questions(LESSON, before=None))
    classes = set(re.findall(r'class="([^"]+)"', html))
    for name in classes - {"ddp"}:
        for rule in re.findall(rf"\.{name}[^{{,]*\{{([^}}]*)\}}", html):
            assert "color" not in rule
