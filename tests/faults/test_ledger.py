"""The ledger knows every communication call of a script, and changes nothing of what it does."""

from __future__ import annotations

import pytest

from ddp_lessons import launch, ledger

HEAD = """
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record

    with process_group():
        rank, world_size = dist.get_rank(), dist.get_world_size()
        x = torch.ones(2, 3)
"""


def body(text: str) -> str:
    return HEAD + text.lstrip("\n")


def told(run, rank: int) -> list[tuple[int, str]]:
    return [(call.line, call.told) for call in run[rank].calls]


LAWFUL = body("""
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        dist.broadcast(x, src=1)
        dist.reduce(x, dst=2)
        parts = [torch.zeros(2) for _ in range(world_size)]
        dist.all_gather(parts, torch.ones(2))
        dist.gather(torch.ones(2), parts if rank == 0 else None, dst=0)
        dist.scatter(torch.ones(2), parts if rank == 0 else None, src=0)
        dist.reduce_scatter(torch.ones(2), parts)
        dist.all_to_all([torch.zeros(2) for _ in range(world_size)], parts)
        lengths = [1 + to + rank for to in range(world_size)]
        total = torch.ones(sum(lengths))
        dist.all_to_all_single(total.clone(), total, lengths, lengths)
        found = [None] * world_size
        dist.all_gather_object(found, "x" * (1 + 100 * rank))
        dist.broadcast_object_list(found, src=0)
        dist.gather_object({"rank": rank}, found if rank == 0 else None, dst=0)
        dist.scatter_object_list([None], found if rank == 0 else None, src=0)
        half = dist.new_group([0, 1])
        other = dist.new_group([1, 2])
        if rank < 2:
            dist.all_reduce(x, group=half)
        if rank > 0:
            dist.all_reduce(torch.ones(7), group=other)
        if rank == 0:
            dist.send(torch.ones(4), dst=1)
        if rank == 1:
            dist.recv(torch.ones(2, 2))
        dist.barrier()
        dist.monitored_barrier()
""")


def test_calls_of_every_kind_that_fit_together_are_all_there_and_cause_no_complaint(script):
    run = launch(script(LAWFUL), 3)
    names = [call.op for call in run[0].calls]
    assert names == [
        *("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter"),
        *("reduce_scatter", "all_to_all", "all_to_all_single", "all_gather_object"),
        *("broadcast_object_list", "gather_object", "scatter_object_list"),
        *("new_group", "new_group", "all_reduce", "send", "barrier", "monitored_barrier"),
    ]
    assert len(run.calls) == 19 + 20 + 18
    assert [call.bytes for call in run[0].calls if call.op == "all_to_all_single"] == [
        4 * (1 + 2 + 3)
    ]
    assert all(call.called <= call.returned for call in run.calls)
    received = next(call for call in run[1].calls if call.op == "recv")
    assert (received.peer, received.bytes) == (0, 16)  # it took from anybody, and that was rank 0


ASYNCHRONOUS = body("""
        work = dist.all_reduce(x, async_op=True)
        other = dist.broadcast(x, 0, async_op=True)
        work.wait()
        other.wait()
""")


def test_an_asynchronous_call_has_the_line_of_its_wait(script):
    for call in launch(script(ASYNCHRONOUS), 2).calls:
        assert call.asynchronous
        assert call.wait_line == {8: 10, 9: 11}[call.line]
        assert call.called <= call.returned <= call.waited <= call.done == call.end


BATCH = body("""
        ahead, behind = (rank + 1) % world_size, (rank - 1) % world_size
        y = torch.zeros(2, 3)
        sends = dist.P2POp(dist.isend, x, ahead)
        receives = dist.P2POp(dist.irecv, y, behind)
        for work in dist.batch_isend_irecv([sends, receives]):
            work.wait()
""")


def test_a_batch_is_recorded_as_the_sends_and_recvs_that_it_holds(script):
    run = launch(script(BATCH), 3)
    assert told(run, 0) == [
        (12, "isend of float32 [2, 3] to rank 1"),
        (12, "irecv of float32 [2, 3] from rank 2"),
    ]
    assert all(call.batched and call.wait_line == 13 and call.done for call in run.calls)


def test_functions_imported_by_name_and_calls_from_a_module_of_the_reader_are_recorded(script):
    script(
        """
            import torch.distributed as dist

            def average(x):
                dist.all_reduce(x)
        """,
        name="helper.py",
    )
    text = """
        import torch
        from torch.distributed import barrier, broadcast
        from torch.distributed.distributed_c10d import all_reduce
        from ddp_lessons.worker import process_group
        import helper

        with process_group():
            x = torch.ones(1)
            all_reduce(x)
            broadcast(x, 0)
            helper.average(x)
            barrier()
    """
    run = launch(script(text), 2)
    assert [(call.file, call.line, call.op) for call in run[1].calls] == [
        ("script.py", 9, "all_reduce"),
        ("script.py", 10, "broadcast"),
        ("helper.py", 4, "all_reduce"),
        ("script.py", 12, "barrier"),
    ]


def test_what_torch_calls_by_itself_is_not_recorded(script):
    text = """
        import torch
        import torch.distributed as dist
        from torch.distributed.nn.functional import all_reduce
        from torch.nn.parallel import DistributedDataParallel as DDP
        from ddp_lessons.worker import process_group

        with process_group():
            model = DDP(torch.nn.Linear(2, 1))
            model(torch.ones(3, 2)).sum().backward()
            dist.all_gather_object([None, None], {"a": 1})
            all_reduce(torch.ones(1))
            dist.barrier()
            del model
    """
    run = launch(script(text), 2)
    assert [call.op for call in run[0].calls] == ["all_gather_object", "barrier"]


def test_calls_without_a_group_or_in_a_group_of_others_are_not_recorded(script):
    text = body("""
        nobody = dist.new_group([0])
        if rank == 1:
            dist.all_reduce(x, group=nobody)
    """)
    text += """
    try:
        dist.all_reduce(x)
    except ValueError:
        pass
    """
    run = launch(script(text), 2)
    assert [call.op for call in run.calls] == ["new_group", "new_group"]


def test_a_call_that_torch_refuses_is_marked_and_the_reader_sees_torchs_own_error(script):
    text = body("""
        try:
            dist.all_reduce("not a tensor")
        except TypeError as error:
            record("refused", error=str(error))
        dist.barrier()
    """)
    run = launch(script(text), 2)
    assert [call.raised for call in run[0].calls] == [True, False]
    assert run.values("error")[0].startswith("Invalid function argument. Expected parameter")


TRAINING = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from ddp_lessons.worker import process_group, record

    with process_group():
        rank = dist.get_rank()
        torch.manual_seed(rank)
        layers = torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        model = DDP(torch.nn.Sequential(*layers))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(20):
            loss = model(torch.randn(5, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            work = dist.all_reduce(mean, async_op=True)
            work.wait()
            record("step", loss=loss.item(), mean=mean.item())
        record("weights", weights=[p.detach() for p in model.parameters()][0])
        dist.barrier()
        del model
"""


def test_results_with_and_without_the_ledger_are_equal(script):
    path = script(TRAINING)
    recorded = launch(path, 2)
    plain = launch(path, 2, env={ledger.SWITCH: "0"})
    assert (len(recorded.calls), len(plain.calls)) == (82, 0)
    assert [r.values for r in recorded.records] == [r.values for r in plain.records]


@pytest.mark.slow
def test_the_torchrun_engine_keeps_the_same_ledger(script):
    path = script(BATCH)
    by_torchrun = launch(path, 3, engine="torchrun")
    assert [told(by_torchrun, rank) for rank in range(3)] == [
        told(launch(path, 3), rank) for rank in range(3)
    ]


def test_threads_of_a_rank_and_its_forked_children_do_not_spoil_the_ledger(script):
    text = body("""
        import os, threading
        groups = [dist.new_group() for _ in range(4)]

        def work(group):
            for _ in range(300):
                dist.all_reduce(torch.ones(1), group=group)

        threads = [threading.Thread(target=work, args=[group]) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        dist.barrier()
    """)
    run = launch(script(text), 2)
    for rank in run:
        assert [call.seq for call in rank.calls] == list(range(4 + 1200 + 1))
        assert all(call.line == 13 for call in rank.calls if call.op == "all_reduce")


def test_a_full_disk_stops_the_ledger_and_not_the_rank(script):
    text = """
        import resource
        import torch
        import torch.distributed as dist
        from ddp_lessons.worker import process_group

        with process_group():
            if dist.get_rank() == 1:
                # No file may grow beyond this from here on: the ledger's is cut at its third part.
                resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
            for _ in range(2000):
                dist.all_reduce(torch.ones(1))
    """
    run = launch(script(text), 2)
    assert run.ok
    assert (len(run[0].calls), len(run[1].calls)) == (2000, 1024)
    assert not run[1].calls.whole


def test_a_compiled_ddp_model_trains_on(script):
    text = body("""
        from torch.nn.parallel import DistributedDataParallel as DDP
        model = torch.compile(DDP(torch.nn.Linear(3, 1)), backend="eager")
        for step in range(3):
            model(x).sum().backward()
        record("trained", gradient=next(model.parameters()).grad)
    """)
    run = launch(script(text), 2)
    assert run.values("gradient") == [[[6.0, 6.0, 6.0]]] * 2


def test_a_compiled_function_with_collectives_is_compiled_whole(script):
    text = body("""
        @torch.compile(backend="eager", fullgraph=True)
        def double(x):
            dist.all_reduce(x)
            return 2 * x

        record("doubled", x=double(torch.ones(1)))
    """)
    assert launch(script(text), 2).values("x") == [[4.0], [4.0]]


def test_groups_of_a_second_meeting_are_not_taken_for_those_of_the_first(script):
    text = """
        import os
        import torch
        import torch.distributed as dist

        rank = int(os.environ["RANK"])
        for time, members in enumerate([[0, 1], [1, 2]]):
            where = f"file://{os.environ['MEET']}_{time}"
            dist.init_process_group("gloo", init_method=where, rank=rank, world_size=3)
            group = dist.new_group(members)
            if rank in members:
                dist.all_reduce(torch.ones(1), group=group)
            dist.barrier()
            dist.destroy_process_group()
    """
    path = script(text)
    run = launch(path, 3, env={"MEET": str(path.parent / "meet")})
    assert [call.group for call in run[1].calls if call.op == "all_reduce"] == [(0, 1), (1, 2)]
