"""Imports run one way, and only a few modules touch processes: read from the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ddp_lessons

HOME = Path(ddp_lessons.__file__).parent

# What each module may import from the package; "views.*" stands for every module there. A module
# that is not here may import nothing of the package until somebody says what it is for.
MAY_IMPORT = {
    # what ranks run
    "scripts.*": {"worker"},
    "worker": set(),
    "windows": set(),
    "lifeline": {"windows"},
    "guard": {"lifeline"},
    "places": set(),
    "operations": set(),
    "joining": set(),
    "forwards": set(),
    "ledger_file": set(),
    "ledger": {"joining", "ledger_file", "operations", "places"},
    "raised": {"places", "worker"},
    "remote": {"guard"},
    "bootstrap": {
        *("forwards", "guard", "joining", "ledger", "lifeline", "raised", "remote", "worker"),
    },
    "own_ranks": {"bootstrap", "guard", "lifeline", "places", "raised", "worker"},
    # what starts them and reads what they leave
    "placement": set(),
    "text": {"run"},
    "run": {"placement", "text"},
    "folders": set(),
    "scripts": set(),
    "name_server": set(),
    "meetings": {"operations", "run"},
    "calls": {"ledger_file", "operations", "run"},
    "agreement": {"calls", "ledger_file", "operations", "run"},
    "collect": {
        "agreement",
        "bootstrap",
        "calls",
        "forwards",
        "name_server",
        "places",
        "placement",
        "run",
        "text",
    },
    "causes": set(),
    "blame": {"run"},
    "endings": {"causes", "run", "stall"},
    "usual_causes": {"mismatch", "stall"},
    "hang": {"agreement", "endings", "run", "stall", "usual_causes"},
    "starting": {"blame", "endings", "run"},
    "report": {
        *("agreement", "blame", "endings", "hang", "mismatch", "run", "stall", "starting"),
        "usual_causes",
    },
    "mismatch": {"operations", "run", "stall"},
    "stall": {"agreement", "blame", "run"},
    "stop_button": set(),
    "output_limit": {"bootstrap", "engines", "stall"},
    "watch": {"agreement", "blame", "bootstrap", "calls", "collect", "engines"},
    "page": set(),
    "progress": {"bootstrap", "collect", "text", "worker"},
    "live": {"page", "progress"},
    "engines": set(),
    "engines.server": {"guard", "lifeline"},
    "engines.frozen": set(),
    "engines.forkserver": {
        *("bootstrap", "engines", "engines.server", "folders", "guard", "lifeline", "run"),
    },
    "engines.marked": {"bootstrap", "collect", "engines"},
    "engines.torchrun": {"engines", "engines.marked"},
    "engines.python": {"bootstrap", "collect", "engines", "engines.marked", "own_ranks"},
    "engines.slurm": {
        *("collect", "engines", "engines.marked", "engines.torchrun", "lifeline", "remote", "run"),
    },
    "arguments": {"engines", "folders", "run"},
    "launcher": {
        *(
            "arguments",
            "bootstrap",
            "collect",
            "engines",
            "folders",
            "hang",
            "lifeline",
            "live",
            "name_server",
            "output_limit",
            "placement",
            "report",
        ),
        *("run", "scripts", "stop_button", "text", "watch", "worker"),
    },
    # what an exercise is, and how an answer is judged
    "checks": set(),
    "checks.values": {"text"},
    "checks.exercise": {"checks.examine", "run"},
    "checks.examine": {"checks", "checks.exercise", "checks.values", "worker"},
    "checks.answers": {"folders"},
    "checks.verdict": {"run"},
    "checks.failures": {
        *("checks", "checks.examine", "checks.exercise", "mismatch", "run", "stall"),
    },
    "checks.grade": {
        *("arguments", "checks", "checks.answers", "checks.examine", "checks.exercise"),
        *("checks.failures", "checks.values", "checks.verdict", "launcher", "run", "stall", "text"),
    },
    # what one exercise needs
    "checks.02_process_groups": {"checks", "checks.exercise", "checks.starts", "checks.values"},
    "checks.starts": {"launcher", "run", "worker"},
    "checks.03_rank_and_world_size": {
        *("checks", "checks.exercise", "checks.values", "run", "text", "worker"),
    },
    "checks.04_collectives": {"checks", "checks.exercise", "checks.values", "run"},
    "checks.05_ring_all_reduce": {
        *("checks", "checks.exercise", "checks.ring", "checks.values", "run"),
    },
    "checks.ring": set(),
    "checks.06_gradient_averaging": {
        *("checks", "checks.exercise", "checks.find_the_bug", "checks.training", "checks.values"),
    },
    "checks.find_the_bug": {
        *("checks", "checks.broken_run", "checks.exercise", "checks.training", "checks.values"),
        "launcher",
    },
    "checks.broken_run": {"checks", "checks.training", "checks.values"},
    "checks.training": set(),
    "checks.07_distributed_sampler": {
        *("checks", "checks.counting", "checks.exercise", "checks.mistakes_07", "checks.sampling"),
        "checks.values",
    },
    "checks.counting": {"checks.exercise"},
    "checks.dealing": set(),
    "checks.mistakes_07": set(),
    "checks.plans": {"checks.dealing", "checks.exercise"},
    "checks.sampling": {
        *("checks", "checks.dealing", "checks.examine", "checks.exercise", "checks.mistakes_07"),
        *("checks.plans", "checks.values", "worker"),
    },
    "checks.08_inside_ddp": {
        *("checks", "checks.delivery", "checks.exercise", "checks.values", "run"),
    },
    "checks.delivery": {"checks", "checks.exercise", "checks.values"},
    "checks.09_ddp_contract": {
        *("checks", "checks.exercise", "checks.micro_batches", "checks.values"),
    },
    "checks.micro_batches": {"checks.exercise"},
    "checks.10_training_template": {
        *("checks", "checks.exercise", "checks.port", "checks.stopping", "checks.values", "worker"),
    },
    "checks.port": {
        *("checks", "checks.exercise", "checks.port_mistakes", "checks.porting"),
        *("checks.stopping", "checks.values", "worker"),
    },
    "checks.porting": set(),
    "checks.port_mistakes": {"checks", "checks.porting", "checks.stopping", "checks.values"},
    "checks.stopping": set(),
    # what a lesson is for, and what its readers answered
    "objectives": set(),
    "objectives.sheets": {"checks", "checks.answers", "objectives"},
    "objectives.asking": {"objectives", "objectives.sheets", "run"},
    "objectives.gain": {"objectives", "objectives.sheets", "text"},
    # what a notebook sees
    "course": {"scripts"},
    "machine": {"course", "launcher", "placement", "run"},
    "source": {"run", "scripts"},
    "guess": {"text"},
    "magic": {
        *("arguments", "checks", "checks.answers", "checks.exercise", "folders", "launcher", "run"),
    },
    "submission": {"arguments", "engines.slurm", "launcher", "run", "scripts"},
    "views": set(),
    "views.*": {
        *(
            "blame",
            "checks.verdict",
            "endings",
            "guess",
            "hang",
            "machine",
            "meetings",
            "mismatch",
            "objectives.asking",
            "page",
            "run",
            "source",
            "stall",
            "submission",
            "text",
        ),
        "views.ancestry",
        "views.call_axis",
        "views.call_labels",
        "views.call_layout",
        "views.call_words",
        "views.ends",
        "views.exposure",
        "views.gap",
        "views.html",
        "views.messages",
        "views.moving",
        "views.player",
        "views.ring_states",
        "views.shards",
        "views.sliders",
        "views.theme",
        "views.wait_words",
    },
    "": {
        *("checks.grade", "checks.verdict"),
        *("engines.forkserver", "guess", "launcher", "machine", "magic", "page", "run", "source"),
        *("objectives.asking", "submission", "views"),
    },
    "__main__": {
        *("checks", "checks.grade", "checks.verdict", "machine", "objectives"),
        "objectives.gain",
    },
}

MAY_TOUCH_PROCESSES = {
    *("bootstrap", "guard", "lifeline", "own_ranks", "remote", "windows"),
    *("engines.forkserver", "engines.marked", "engines.slurm"),
}
PROCESS_MODULES = {"subprocess", "multiprocessing"}
PROCESS_CALLS = {"kill", "killpg", "fork", "_exit", "waitpid", "execv", "spawnv", "system", "popen"}


def name_of(path: Path) -> str:
    parts = path.relative_to(HOME).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(HOME.rglob("*.py"))}


def allowed(module: str) -> set[str]:
    if module in MAY_IMPORT:
        return MAY_IMPORT[module]
    return MAY_IMPORT.get(f"{module.split('.')[0]}.*", set())


def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """The modules that an import statement names, `from a import b` as a.b; [] for another node."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "the package writes its imports out in full"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def from_the_package(module: str) -> set[str]:
    found = set()
    for node in ast.walk(tree(module)):
        for name in imported(node):
            root, _, rest = name.partition(".")
            if root != "ddp_lessons":
                continue
            while rest and rest not in MODULES:  # a name in a module: the module is what counts
                rest = rest.rpartition(".")[0]
            found.add(rest)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_place_allows(module):
    assert from_the_package(module) <= allowed(module)


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("scripts.")])
def test_torch_and_drawing_are_imported_only_when_they_are_needed(module):
    heavy = {"torch", "matplotlib", "IPython", "ipywidgets", "pygments", "sklearn"}
    found = {name.split(".")[0] for node in tree(module).body for name in imported(node)}
    assert not heavy & found or module == "magic"  # which only IPython loads


@pytest.mark.parametrize("module", sorted(set(MODULES) - MAY_TOUCH_PROCESSES))
def test_processes_are_touched_in_engines_and_bootstrap_only(module):
    if module.startswith("scripts."):
        return  # a lesson may be about processes
    for node in ast.walk(tree(module)):
        assert not {name.split(".")[0] for name in imported(node)} & PROCESS_MODULES
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "os" or node.attr not in PROCESS_CALLS


def test_the_table_names_modules_that_exist():
    assert {name for name in MAY_IMPORT if not name.endswith(".*")} <= set(MODULES)
    assert MAY_TOUCH_PROCESSES.issubset(MODULES)


def test_no_module_bears_a_public_name_of_the_package():
    assert not set(ddp_lessons.__all__) & {module.split(".")[0] for module in MODULES}
    assert sorted(ddp_lessons.__all__) == ddp_lessons.__all__
    for name in ddp_lessons.__all__:
        assert callable(getattr(ddp_lessons, name))
    with pytest.raises(AttributeError, match="launsh"):
        ddp_lessons.launsh  # noqa: B018
