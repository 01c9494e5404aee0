"""Answers that break a check or try to be passed by it, each with what it must be told."""

from __future__ import annotations

from dataclasses import dataclass

# A right answer to 04_collectives/all_gather, for those that go wrong beside it.
RIGHT = """\
import ctypes, os, subprocess, sys, tempfile, threading, time
import torch
import torch.distributed as dist
from ddp_lessons.worker import record

def right(x):
    parts = []
    for source in range(dist.get_world_size()):
        part = x.clone()
        dist.broadcast(part, src=source)
        parts.append(part)
    return parts

"""
LAST = "dist.get_rank() == dist.get_world_size() - 1 > 0"  # on more than one rank, the last of them


@dataclass(frozen=True)
class Fooling:
    """`body` is what all_gather(x) does; the verdict must have the `mistake` and say `told`."""

    name: str
    body: str
    mistake: str
    told: str
    slow: bool = False

    @property
    def text(self) -> str:
        lines = "".join(f"    {line}\n" for line in self.body.splitlines())
        return f"{RIGHT}def all_gather(x):\n{lines}"


FORGED = "record('graded', token='0', result=[1], damaged=[], changed=[])"
EVIL = "def {name}(self, *_): raise RuntimeError('evil')"

ENDS = [
    Fooling("os_exit", "os._exit(0)", "left_early", "rank 0 left early with exit code 0"),
    Fooling("sys_exit", "sys.exit(0)", "left_early", "rank 0 left before your function returned"),
    Fooling("exit_with_words", "sys.exit('passed')", "left_early", 'with the message "passed"'),
    Fooling("right_then_exit", "right(x); os._exit(0)", "left_early", "left early"),
    Fooling("forged", f"{FORGED}; return 'passed'", "wrong_type", "returned a str"),
    Fooling("forged_then_exit", f"{FORGED}; sys.exit(0)", "left_early", "left before"),
    Fooling("kills_itself", "os.kill(os.getpid(), 9)", "killed", "killed by SIGKILL"),
    Fooling("native_crash", "ctypes.string_at(0)", "killed", "killed by SIGSEGV"),
    Fooling("raises", "raise ValueError('no luck')", "raises", "line 15: ValueError: no luck"),
    Fooling("huge_message", "raise ValueError('x' * 3_000_000)", "raises", "ValueError: xxx"),
    Fooling("many_lines", "raise ValueError('x\\n' * 100_000)", "raises", "ValueError: x"),
    Fooling(
        "evil_message",
        f"class Bad(Exception):\n    {EVIL.format(name='__str__')}\nraise Bad",
        "raises",
        "its message cannot be had",
    ),
    Fooling("interrupt", "raise KeyboardInterrupt", "raises", "KeyboardInterrupt"),
    Fooling("recursion", "return all_gather(x)", "raises", "RecursionError"),
    Fooling("asks", "return input('?')", "raises", "EOFError"),
    Fooling(
        "not_written_on_one_rank",
        f"if {LAST}:\n    raise NotImplementedError\nreturn right(x)",
        "not_written",
        "all_gather() is not written yet, line 16",
    ),
    Fooling(
        "one_rank_leaves",
        f"if {LAST}: os._exit(0)\nreturn right(x)",
        "left_early",
        "rank 1 left early with exit code 0",
    ),
    Fooling(
        "one_rank_skips",
        f"if {LAST}: return [x]\nreturn right(x)",
        "mismatch",
        "rank 1 returned while rank 0 waited in broadcast",
    ),
    Fooling("loops", "while True: pass", "endless", "rank 0 is at line 15"),
    Fooling("sleeps", "time.sleep(600)", "endless", "rank 0 is at line 15", slow=True),
    Fooling(
        "one_rank_sleeps",
        f"if {LAST}: time.sleep(600)\nreturn right(x)",
        "endless",
        "rank 0 waits in broadcast, line 10; rank 1 is at line 15",
    ),
    Fooling(
        "waits",
        "if dist.get_world_size() > 1: dist.recv(x.clone(), 1 - dist.get_rank())\nreturn right(x)",
        "waits",
        "rank 0 waits in recv from rank 1",
        slow=True,
    ),
    Fooling(
        "leaves_a_thread",
        "threading.Thread(target=time.sleep, args=(600,)).start(); return right(x)",
        "left_running",
        "your function had returned, but the process of rank 0 did not end",
    ),
    Fooling(
        "leaves_children",
        "for own in (True, False):\n"
        "    subprocess.Popen(['sleep', '600'], start_new_session=own)\n"
        "return [x] * dist.get_world_size()",
        "no_work",
        "should be",
    ),
    Fooling(
        "endless_output",
        "while True: os.write(1, b'x' * 1_000_000)",
        "prints",
        "more than 256 MB of output",
        slow=True,
    ),
]

RESULTS = [
    Fooling("nothing", "right(x)", "nothing_returned", "rank 0 returned None"),
    Fooling("success_printed", "print('all_gather: passed')", "nothing_returned", "None"),
    Fooling(
        "50,000 lines",
        "for n in range(50_000): print('line', n)",
        "nothing_returned",
        "49,995 lines hidden",
    ),
    Fooling("nan", "return [one * float('nan') for one in right(x)]", "dtype", "float32"),
    Fooling("a_text", "return 'passed'", "wrong_type", "returned a str"),
    Fooling("objects", "return {'a': object(), 1: {2, 3}}", "wrong_type", "returned a dict"),
    Fooling("a_generator", "yield x", "wrong_type", "returned a generator"),
    Fooling("inside_itself", "a = []; a.append(a); return a", "wrong_type", "entry 0 is a list"),
    Fooling("no_call", "return [x.clone()] * dist.get_world_size()", "no_work", "should be"),
    Fooling("a_million", "return list(range(10**7))", "wrong_type", "a list of 10,000,000 entries"),
    Fooling(
        "a_big_tensor",
        "return [torch.zeros(10**7)]",
        "wrong_type",
        "a tensor of 10,000,000 numbers",
    ),
    Fooling("tensors", "return [torch.zeros(20_000)] * 1_000", "wrong_type", "cannot be read"),
    Fooling("a_long_text", "return 'x' * 10**7", "wrong_type", "a text of 10,000,000 characters"),
    Fooling("no_text", "return ['\\ud800']", "wrong_type", "rank 0: entry 0 is a str"),
    Fooling(
        "without_numbers",
        "return [one.to('meta') for one in right(x)]",
        "wrong_type",
        "entry 0 is a tensor of int64, strided, on meta",
    ),
    Fooling(
        "equal_to_all",
        "class All:\n"
        "    def __eq__(self, other): return True\n"
        f"    {EVIL.format(name='tolist')}\n"
        f"    {EVIL.format(name='__iter__')}\n"
        "    __class__ = list\n"
        "return All()",
        "wrong_type",
        "returned an All",
    ),
    Fooling(
        "a_nameless_class",
        "class Meta(type):\n    __name__ = property(lambda cls: 1 / 0)\n"
        "class Hidden(metaclass=Meta): pass\nreturn Hidden()",
        "wrong_type",
        "returned a Hidden",
    ),
    Fooling(
        "a_tensor_that_lies",
        "class Sub(torch.Tensor):\n"
        "    def tolist(self): return [99]\n"
        "    def __eq__(self, other): return True\n"
        "return [one.as_subclass(Sub) for one in right(x)]",
        "wrong_type",
        "entry 0 is a Sub",
    ),
    Fooling(
        "a_tensor_that_raises",
        "class Sub(torch.Tensor):\n"
        "    @classmethod\n"
        f"    {EVIL.format(name='__torch_function__')}\n"
        "return [one.as_subclass(Sub) for one in right(x)]",
        "wrong_type",
        "entry 0 is a Sub",
    ),
]

# What a right answer does beside; the verdict names it.
STATES = {
    "input": ("x.zero_()", "changed_input", "x was "),
    "input's shape": ("x.resize_(0)", "changed_input", "and is [] now"),
    "input's type": ("x.data = x.double()", "changed_input", "x was "),
    "dtype": ("torch.set_default_dtype(torch.float64)", "changed_state", "torch's default dtype"),
    "gradients": ("torch.set_grad_enabled(False)", "changed_state", "gradients are computed"),
    "threads": ("torch.set_num_threads(7)", "changed_state", "number of threads"),
    "seed": ("torch.manual_seed(0)", "changed_state", "random numbers"),
    "environment": ("os.environ['SOME'] = '1'", "changed_state", "environment variables"),
    "no environment": ("os.environ.clear()", "changed_state", "environment variables"),
    "broken environment": ("os.environ = None", "changed_state", "environment variables"),
    "folder": ("os.chdir('/')", "changed_state", "the current folder"),
    "no folder": (
        "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
        "changed_state",
        "the current folder",
    ),
    "group": ("dist.destroy_process_group()", "changed_state", "the default process group"),
    "equal": ("torch.equal = lambda *_: True", "changed_state", "changed torch.equal"),
    "tolist": ("torch.Tensor.tolist = lambda _: [1]", "changed_state", "torch.Tensor.tolist"),
    "a collective": ("dist.broadcast = print", "changed_state", "torch.distributed.broadcast"),
}
STATE = [
    Fooling(name, f"parts = right(x); {does}; return parts", mistake, told)
    for name, (does, mistake, told) in STATES.items()
]

# Whole files: text, mistake, words.
FILES = {
    "syntax": ("def all_gather(x)\n", "syntax", "line 1: SyntaxError"),
    "nul": ("\0", "syntax", "null bytes"),
    "nothing": ("", "no_function", "there is no function all_gather()"),
    "other name": ("def gather(x): pass\n", "no_function", "there is no function all_gather()"),
    "no function": ("all_gather = 3\n", "no_function", "there is no function all_gather()"),
    "no argument": ("def all_gather(): pass\n", "no_function", "takes 0 positional arguments"),
    "one more": ("def all_gather(x, group): pass\n", "no_function", "argument: 'group'"),
    "exit at the top": ("import sys\nsys.exit()\n", "left_early", "left before"),
    "patch at the top": (
        f"{RIGHT}all_gather = right\ntorch.equal = lambda *_: True\n",
        "changed_state",
        "changed torch.equal",
    ),
    "launch": (
        "from ddp_lessons import launch\nlaunch('00_start_here/hello.py')\n",
        "raises",
        "keep launch() out of the script",
    ),
    "check": (
        "from ddp_lessons import check\ncheck('04_collectives/all_gather', __file__)\n",
        "raises",
        "launch() was called by a rank",
    ),
}
