"""show(): which lines are lit, which are folded, and what is printed."""

from __future__ import annotations

import pytest

from ddp_lessons import show

OLD = "import os\n\nx = 1\ny = 2\nprint(x)\n"
NEW = "import os\nimport sys\n\nx = 1\nz = 3\nprint(x)\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "old.py").write_text(OLD)
    (tmp_path / "new.py").write_text(NEW)
    (tmp_path / "long.py").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    monkeypatch.chdir(tmp_path)


def test_the_whole_script_is_shown_with_its_line_numbers():
    assert repr(show("old.py")).splitlines() == [
        "old.py", "  1 import os", "  2", "  3 x = 1", "  4 y = 2", "  5 print(x)"
    ]  # fmt: skip


def test_only_the_lines_that_differ_from_another_script_are_lit():
    shown = show("new.py", since="old.py")
    assert shown.lit == {2, 5}
    assert shown.caption == "new.py: 2 of 6 lines differ from old.py"
    assert [line for line in repr(shown).splitlines() if line.startswith(">")] == [
        "> 2 import sys",
        "> 5 z = 3",
    ]


def test_a_script_does_not_differ_from_itself():
    assert show("old.py", since="old.py").lit == frozenset()


def test_lines_far_from_the_lit_ones_are_folded_and_counted():
    shown = show("long.py", light=["line 5", "line 17"])
    assert shown.lit == {5, 17}
    rows = repr(shown).splitlines()
    assert rows[0] == "long.py, lines 5, 17"
    assert [row.strip() for row in rows if "…" in row] == ["… 7 lines …"]  # of one or two: printed
    assert len(rows) == 1 + 13 + 1


def test_where_most_lines_would_be_printed_all_are():
    assert len(show("long.py", light=["line 3", "line 8", "line 13", "line 18"]).shown) == 20


def test_light_matches_any_line_that_contains_the_text():
    assert show("long.py", light="line 1").lit == {1, *range(10, 20)}


def test_text_that_no_line_contains_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="no line of old.py contains 'all_reduce'"):
        show("old.py", light=["x", "all_reduce"])


def test_an_unknown_script_is_an_error():
    with pytest.raises(FileNotFoundError, match="no script 'nowhere.py'"):
        show("nowhere.py")
