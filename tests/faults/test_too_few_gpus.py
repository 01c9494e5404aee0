"""Where ranks go on a machine that has not what they ask for."""

from __future__ import annotations

import pytest

from ddp_lessons import launch, launcher, placement


def test_two_ranks_on_one_gpu_are_refused_before_any_process_starts(script, monkeypatch):
    def start(*_):
        raise AssertionError("a process would have been started")

    monkeypatch.setattr(placement, "gpu_count", lambda _=None: 1)
    monkeypatch.setattr(placement, "nccl_built", lambda: True)
    monkeypatch.setattr(launcher.engines, "workers", start)
    with pytest.raises(RuntimeError) as caught:
        launch(script("print('hello')\n"), 2, device="cuda")
    said = str(caught.value)
    assert "this machine shows 1 GPU, and 2 ranks need 2 GPUs" in said
    assert "Ask for world_size=1, or leave out device=" in said


@pytest.mark.parametrize(("gpus", "why"), [(0, "no GPU"), (2, "8 ranks and 2 GPUs")])
def test_eight_ranks_on_too_few_gpus_use_gloo_on_the_cpu_and_a_sentence_says_so(
    script, monkeypatch, gpus, why
):
    monkeypatch.setattr(placement, "gpu_count", lambda _=None: gpus)
    monkeypatch.setattr(placement, "nccl_built", lambda: True)
    text = """
        import torch
        import torch.distributed as dist
        from ddp_lessons.worker import process_group, record

        with process_group() as device:
            x = torch.ones(1, device=device)
            dist.all_reduce(x)
            record("met", sum=x.item(), backend=dist.get_backend(), device=str(device))
    """
    run = launch(script(text), 8)
    assert run.values("sum") == [8.0] * 8
    assert run.values("backend") == ["gloo"] * 8
    assert run.values("device") == ["cpu"] * 8
    assert run.placement.sentence.startswith(f"gloo on the CPU ({why}")
