"""submit(): its text is the job file and nothing else, with and without Slurm."""

from __future__ import annotations

import pytest
from test_started import TWO

from ddp_lessons import submission, submit
from ddp_lessons.engines import slurm
from ddp_lessons.run import WorkerError
from ddp_lessons.views import html

SCRIPT = "11_launchers/place.py"


@pytest.fixture
def here(monkeypatch):
    """Slurm is here, and what becomes of the job is up to the test."""

    def becomes(result):
        def launch(*args, **options):
            assert options["engine"] == "slurm"
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(slurm, "is_here", lambda: True)
        monkeypatch.setattr(submission, "launch", launch)
        return submit(SCRIPT, 4, nnodes=2)

    return becomes


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.setattr(slurm, "is_here", lambda: False)
    return submit(SCRIPT, 4, nnodes=2)


def test_the_text_is_the_job_file_whatever_became_of_the_job(here, nowhere):
    results = [
        here(TWO),
        here(WorkerError("place.py: rank 1 failed", TWO, 1)),
        here(RuntimeError("sbatch refused the job: no")),
    ]
    assert {repr(one) for one in results} == {repr(nowhere)}
    assert repr(nowhere).startswith("#!/bin/bash\n#SBATCH --job-name=place\n")
    assert repr(nowhere).endswith("    place.py")


def test_the_html_has_the_file_and_the_result_or_one_sentence(here, nowhere):
    assert "There is no Slurm here" in html.submission(nowhere)
    assert "#SBATCH --nodes=2" in html.submission(nowhere)
    assert "<table" not in html.submission(nowhere)
    assert "Slurm ran the job" in html.submission(here(TWO))
    assert "<table" in html.submission(here(TWO))
    failed = html.submission(here(WorkerError("place.py: rank 1 failed", TWO, 1)))
    assert "The job failed. place.py: rank 1 failed" in failed
    refused = html.submission(here(RuntimeError("sbatch refused the job: <no>")))
    assert "The job was not run: sbatch refused the job: &lt;no&gt;." in refused


def test_arguments_that_cannot_work_are_refused_with_and_without_slurm():
    with pytest.raises(ValueError, match="do not divide"):
        submit(SCRIPT, 3, nnodes=2)
    with pytest.raises(FileNotFoundError):
        submit("11_launchers/no_such.py")
