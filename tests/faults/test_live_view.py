"""The live view in real kernels: seen while a run goes on, gone without a trace at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from html import unescape
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from processes import kernel

# A run that lasts until somebody has seen what it prints; it then ends well, or as it is told.
WAITS = """
    import os, sys, time
    from pathlib import Path
    from ddp_lessons.worker import record
    rank = os.environ["RANK"]
    print("first", rank, "<b>", flush=True)
    print("not yet a line", end="", flush=True)
    record("progress", step=1, of=2)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
    if len(sys.argv) > 2:
        raise ValueError(sys.argv[2])
    print(" but now")
"""
LASTS = "import time\nprint('hello')\ntime.sleep(2)\n"  # longer than what is not drawn at all


@pytest.fixture(scope="module")
def started():
    with kernel() as started:
        started.run("from ddp_lessons import launch\nfrom IPython.display import HTML, display")
        yield started


def drawn(messages: list[tuple[str, dict]]) -> list[str]:
    """What the live view showed, one text a drawing."""
    found = [content.get("data", {}).get("text/html", "") for _, content in messages]
    return [unescape(html) for html in found if "ddp-live" in html]


def left(messages: list[tuple[str, dict]]) -> list[dict]:
    """The outputs that a notebook has at the end, by the rules of the message specification."""
    outputs: list[dict] = []
    for kind, content in messages:
        if kind == "clear_output":
            assert not content["wait"]
            outputs.clear()
        elif kind == "update_display_data":
            for output in outputs:
                if output.get("transient") == content["transient"]:
                    output["data"] = content["data"]
        elif kind == "stream" and outputs and outputs[-1].get("name") == content["name"]:
            outputs[-1]["text"] += content["text"]
        elif kind in ("stream", "display_data", "execute_result", "error"):
            outputs.append(dict(content))
    return outputs


def until_seen(go: Path, *lines: str):
    """A hook that lets the run end once the live view has shown these lines."""

    def seen(kind: str, content: dict) -> None:
        if any(all(line in html for line in lines) for html in drawn([(kind, content)])):
            go.touch()

    return seen


FIRST = ("rank 0 | first 0 <b>", "rank 1 | first 1 <b>")


def test_what_ranks_print_is_seen_before_the_run_ends_and_nothing_of_it_remains(
    started, script, tmp_path
):
    go, path = tmp_path / "go", script(WAITS)
    code = f"run = launch({str(path)!r}, 2, args=[{str(go)!r}])"
    messages = started.messages(code, until_seen(go, *FIRST, "rank 0  step 1 of 2"))
    assert go.exists()
    assert left(messages) == []
    assert not any("not yet a line" in html for html in drawn(messages) if "but now" not in html)
    assert started.run("print(run[1].stdout)").splitlines()[:1] == ["first 1 <b>"]


def test_nothing_remains_beside_the_report_of_a_rank_that_failed(started, script, tmp_path):
    go, path = tmp_path / "go", script(WAITS)
    code = f"launch({str(path)!r}, 2, args=[{str(go)!r}, 'bad'])"
    (report,) = left(started.messages(code, until_seen(go, *FIRST)))
    assert go.exists()
    assert report["ename"] == "WorkerError"


def test_nothing_remains_after_the_time_limit(started, script, tmp_path):
    path = script(WAITS)
    messages = started.messages(f"launch({str(path)!r}, 2, args=['nowhere'], timeout=3)")
    assert drawn(messages)
    (report,) = left(messages)
    assert report["ename"] == "WorkerError"


def test_nothing_remains_after_stop(started, script):
    path, stopped = script(WAITS), []

    def stop(kind: str, content: dict) -> None:
        if drawn([(kind, content)]) and not stopped:
            stopped.append(True)
            started.interrupt()

    (report,) = left(started.messages(f"launch({str(path)!r}, 2, args=['nowhere'])", stop))
    assert stopped
    assert (report["ename"], report["evalue"]) == ("KeyboardInterrupt", "2 ranks stopped")


def test_what_the_cell_itself_showed_before_is_kept_in_its_order(started, script, tmp_path):
    path = script(LASTS)
    code = f"""
import sys
print("one")
display(HTML("<i>two</i>"))
print("three", file=sys.stderr)
launch({str(path)!r}, 1)
print("four")
changed = display("five", display_id=True)
launch({str(path)!r}, 1)
changed.update("six")
"""
    messages = started.messages(code)
    assert [kind for kind, _ in messages].count("clear_output") == 2
    told = [
        out["text"] if "text" in out else out["data"].get("text/html") or out["data"]["text/plain"]
        for out in left(messages)
    ]
    assert told == ["one\n", "<i>two</i>", "three\n", "four\n", "'six'"]


def test_what_another_thread_prints_during_a_run_is_kept(started, script, tmp_path):
    go, path = tmp_path / "go", script(WAITS)
    code = f"""
import threading, time
from pathlib import Path
def work():
    while not Path({str(go)!r}).exists():
        time.sleep(0.01)
    print("from a thread")
    display("and this")
    Path({str(go)!r} + "2").touch()
thread = threading.Thread(target=work)
thread.start()
run = launch({str(path)!r}, 2, args=[{str(go)!r} + "2"])
thread.join()
"""
    outputs = left(started.messages(code, until_seen(go, *FIRST)))
    assert "from a thread\n" in [out.get("text") for out in outputs]
    assert {"text/plain": "'and this'"} in [out.get("data") for out in outputs]
    assert drawn([("", out) for out in outputs]) == []


def test_a_view_that_could_not_be_taken_away_is_not_drawn(started, script):
    path = script(LASTS)
    code = f"""
import ipywidgets
with ipywidgets.Output():
    run = launch({str(path)!r}, 1)
print(run.ok)
"""
    messages = started.messages(code)
    assert drawn(messages) == []
    assert left(messages)[-1]["text"] == "True\n"


def test_a_launch_on_another_thread_works_and_draws_nothing(started, script):
    path = script(LASTS)
    code = f"""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    print([run.ok for run in pool.map(launch, [{str(path)!r}] * 2)])
"""
    messages = started.messages(code)
    assert drawn(messages) == []
    assert left(messages) == [{"name": "stdout", "text": "[True, True]\n"}]


def test_captured_output_has_nothing_of_it(started, script):
    path = script(LASTS)
    code = f"%%capture kept\nlaunch({str(path)!r}, 1)\nprint('mine')"
    assert left(started.messages(code)) == []
    assert started.run("print(kept.stdout, len(kept.outputs))") == "mine\n 0\n"


def test_a_front_end_that_answers_no_input_sees_nothing(started, script):
    path = script(LASTS)
    messages = started.messages(f"run = launch({str(path)!r}, 1)", stdin=False)
    assert {kind for kind, _ in messages} == {"status", "execute_input"}


def test_the_switch_overrules_the_front_end(started, script):
    path = script(LASTS)
    code = "import os\nos.environ['DDP_LESSONS_LIVE'] = {!r}\nrun = launch({!r}, 1)"
    try:
        assert drawn(started.messages(code.format("0", str(path)))) == []
        assert drawn(started.messages(code.format("1", str(path)), stdin=False))
    finally:
        started.run("del os.environ['DDP_LESSONS_LIVE']")


def test_the_cell_that_imports_the_package_shows_its_first_launch(script):
    path = script(LASTS)
    with kernel() as fresh:
        messages = fresh.messages(f"import ddp_lessons as d\nrun = d.launch({str(path)!r}, 1)")
    assert drawn(messages)
    assert left(messages) == []


class Reader(NotebookClient):
    """nbclient, with an eye on what it is sent."""

    def process_message(self, message, cell, index):
        self.seen = [*getattr(self, "seen", []), (message["msg_type"], message["content"])]
        return super().process_message(message, cell, index)


@pytest.fixture
def notebook(script):
    path = script(LASTS)
    cells = [
        "from ddp_lessons import launch",
        f"print('before')\nrun = launch({str(path)!r}, 2)\nprint(run)",
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata=metadata)


OUTPUT = "before\nscript.py on 2 ranks: ok\nrank 0 | hello\nrank 1 | hello\n"


@pytest.mark.parametrize("switch", ["", "1"])
def test_nbclient_sees_nothing_and_keeps_nothing_even_if_it_is_made_to_see(
    notebook, monkeypatch, switch
):
    monkeypatch.setenv("DDP_LESSONS_LIVE", switch)
    client = Reader(notebook)
    client.execute()
    assert bool(drawn(client.seen)) is (switch == "1")
    assert "".join(out["text"] for cell in notebook.cells for out in cell.outputs) == OUTPUT


def test_nbval_sees_nothing(notebook, tmp_path):
    for count, cell in enumerate(notebook.cells, 1):
        cell.execution_count = count
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", name="stdout", text=OUTPUT)]
    nbformat.write(notebook, tmp_path / "lesson.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_plain_python_says_nothing_even_if_it_is_asked_to(script):
    path = script(LASTS)
    program = f"from ddp_lessons import launch; launch({str(path)!r}, 1)"
    env = {**os.environ, "DDP_LESSONS_LIVE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
