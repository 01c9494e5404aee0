"""The traps of lesson 09 on real ranks: what each leaves on them, and that its mend mends it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ddp_lessons import WorkerError, launch, scripts
from ddp_lessons.run import Run
from ddp_lessons.views.gap import SAME, gaps

LESSON = "09_ddp_contract"
DRIFTING = ("through_module", "unfrozen")
CHANGED = ("loaded", "pushed")


def ran(name: str, *args: str, world_size: int = 2, **how) -> Run:
    return launch(f"{LESSON}/{name}.py", world_size, args=args, **how)


def failed(name: str, *args: str, **how) -> tuple[str, Run]:
    with pytest.raises(WorkerError) as caught:
        ran(name, *args, **how)
    return str(caught.value), caught.value.run


def near(*numbers: float) -> Sequence[float]:
    return pytest.approx(numbers, abs=1e-4)


@pytest.mark.parametrize("name", DRIFTING)
def test_a_gap_grows_where_gradients_are_not_averaged(name):
    assert gaps(ran(name)) == near(0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize("name", CHANGED)
def test_a_gap_stays_where_weights_were_changed(name):
    line = gaps(ran(name))
    assert line[-1] > 0.9
    assert line[2:] == near(*line[1:-1])


def test_dividing_once_more_shows_to_one_process_only():
    run, one = ran("divided"), ran("divided", world_size=1)
    assert max(gaps(run)) < SAME
    assert gaps((run, one)) == near(0.075, 0.15, 0.225, 0.3)


@pytest.mark.parametrize("name", [*DRIFTING, *CHANGED, "divided"])
def test_no_trap_says_a_word_and_every_mend_closes_the_gap(name):
    assert [rank.stderr for rank in ran(name)] == ["", ""]
    assert max(gaps(ran(name, "mended"))) < SAME


def test_the_mended_runs_train_as_one_process_does():
    one = ran("divided", world_size=1)
    for name in ("through_module", "divided"):
        assert max(gaps((ran(name, "mended"), one))) < SAME


def test_past_the_wrapper_each_rank_trains_alone():
    third = [rank.records[2].values["parameters"] for rank in ran("through_module")]
    assert third[0] == near(-0.3075)
    assert third[1] == near(-0.6075)


def test_the_wrappers_state_bears_other_names():
    assert ran("loaded").values("names") == [["module.weight"]] * 2


def test_the_next_synchronised_backward_averages_all_that_grad_holds():
    run = ran("held")
    assert run.values("local") == [1, 2]
    assert run.values("averaged") == [3, 3]


def test_no_sync_acts_on_the_forward():
    run = ran("no_sync")
    told = [
        {r.name: (r.values["gradient"], r.values["all_reduces"]) for r in rank.records}
        for rank in run
    ]
    assert told == [
        {
            "around neither": (1.5, 1),
            "around both": (own, 0),
            "around the backward": (1.5, 1),
            "around the forward": (own, 0),
            "flag raised between": (own, 0),
        }
        for own in (1.0, 2.0)
    ]


@pytest.mark.parametrize(("level", "named"), [("OFF", False), ("INFO", True)])
def test_an_unused_parameter_stops_the_second_step_and_is_named_on_demand(level, named):
    _, run = failed("unused", env={"TORCH_DISTRIBUTED_DEBUG": level})
    assert [len(rank.records) for rank in run] == [1, 1]
    assert run.values("gradient") == [1.0, 2.0]  # the first step has averaged nothing
    assert run.values("all_reduces") == [0, 0]
    assert "did not receive grad for rank 0: 1" in run[0].failure.message
    assert ("second.weight" in run[0].failure.message) is named


@pytest.mark.parametrize(("args", "count"), [((), 1), (("find",), 2)])
def test_looking_for_unused_parameters_costs_one_all_reduce_a_step(args, count):
    run = ran("unused", "all", *args)
    assert [record.values["all_reduces"] for record in run.records] == [count] * 6


def test_looking_for_unused_parameters_cures_those_and_no_others():
    assert ran("unused", "find").values("gradient") == [1.5, 1.5]
    assert ran("unfrozen", "find").values("gradient") == [1.0, 2.0]


def test_a_model_that_is_wrapped_anew_averages_an_unfrozen_weight():
    assert ran("unfrozen").values("gradient") == [1.0, 2.0]
    assert ran("unfrozen", "mended").values("gradient") == [1.5, 1.5]


def test_rank_0s_running_mean_is_the_one_that_counts():
    own, mended, one = ran("buffers"), ran("buffers", "mended"), ran("buffers", world_size=1)
    means = [[r.values["running_mean"] for r in rank.records] for rank in own]
    assert means == [[0.1, 0.19], [-0.025, 0.065]]
    assert mended.values("running_mean") == one.values("running_mean") * 2 == [0.07125] * 2


def test_an_evaluation_on_rank_0_alone_waits_in_the_wrapper_and_passes_past_it():
    report, run = failed("evaluate", device="cpu", timeout=10)
    assert "rank 0 waits in the forward of DDP" in report
    assert "rank 1 waits in barrier" in report
    assert not run.records
    assert ran("evaluate", "mended").ok


def test_without_buffers_rank_0_may_evaluate_alone_through_the_wrapper(tmp_path):
    text = (scripts.HERE / LESSON / "evaluate.py").read_text(encoding="utf-8")
    assert "nn.BatchNorm1d(1)" in text
    script = tmp_path / "no_buffers.py"
    script.write_text(text.replace("nn.BatchNorm1d(1)", "nn.Linear(1, 1)"), encoding="utf-8")
    assert launch(script, 2).ok


def test_uneven_steps_are_counted_and_join_passes_with_equal_weights():
    report, _ = failed("uneven", device="cpu", timeout=10)
    assert "DDP's forward: 5 times on rank 0; 6 times on rank 1." in report
    run = ran("uneven", "mended")
    assert run.values("steps") == [5, 6]
    # Five steps with 1.5, and one with the mean of 0 and 2.
    assert [weights[0] for weights in run.values("parameters")] == near(-0.8575, -0.8575)
