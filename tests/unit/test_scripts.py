"""Looking a script up by path or by name, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lessons import scripts
from ddp_lessons.course import names


def test_every_script_of_the_course_is_found_by_its_name():
    for name in names():
        assert scripts.find(name) == (scripts.HERE / name).resolve()


def test_a_file_in_the_current_folder_comes_first(tmp_path, monkeypatch):
    name = names()[0]
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert scripts.find(name) == (tmp_path / name).resolve()


def test_a_path_may_be_absolute_or_lie_in_the_home_folder(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        scripts.find(path) == scripts.find(str(path)) == scripts.find("~/mine.py") == path.resolve()
    )


@pytest.mark.parametrize("wrong", ["00_start_here/ad.py", "00_start_her/add.py", "add.py", "ad.py"])
def test_a_mistyped_name_is_answered_with_the_nearest(wrong):
    with pytest.raises(FileNotFoundError, match="Did you mean .*00_start_here/add.py"):
        scripts.find(wrong)


def test_the_nearest_may_be_the_readers_own_file(tmp_path, monkeypatch):
    (tmp_path / "training.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for wrong in ("trainning.py", "triaining.py", "Training.py"):
        with pytest.raises(FileNotFoundError, match=r"Did you mean training.py\b"):
            scripts.find(wrong)


@pytest.mark.parametrize("wrong", ["zzzz", "", "00_start_here", "\0"])
def test_a_name_that_is_near_none_is_refused_without_a_guess(wrong):
    with pytest.raises(FileNotFoundError) as caught:
        scripts.find(wrong)
    assert str(caught.value).startswith(f"no script {wrong!r} in this folder or among the course's")


def test_at_most_three_names_are_offered():
    assert len(scripts.nearest("00_start_here/x.py")) <= 3


@pytest.mark.parametrize("thing", [print, lambda: None, Path], ids=["builtin", "lambda", "class"])
def test_a_function_is_refused_by_name_with_the_way_to_run_code_on_ranks(thing):
    with pytest.raises(TypeError, match="%%ranks") as caught:
        scripts.find(thing)
    assert thing.__name__ in str(caught.value)


@pytest.mark.parametrize("thing", [None, 3, b"hello.py"])
def test_what_is_no_path_at_all_is_refused_by_its_type(thing):
    with pytest.raises(TypeError, match=type(thing).__name__):
        scripts.find(thing)
