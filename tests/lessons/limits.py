"""What every built notebook must keep to: pure functions from a notebook to sentences.

Each returns what is wrong, a sentence each; an empty list means that nothing is. test_limits.py
shows each of them a notebook that breaks it.
"""

from __future__ import annotations

import re
import socket
import statistics
from pathlib import Path

from nbformat import NotebookNode

MOST_WORDS = 1200
CODE_CELLS = (10, 22)  # with the two that ask the questions
MEDIAN_LINES, MOST_LINES, MOST_RANKS_LINES = 4, 8, 14
MOST_TERMS = 5
# A lesson's minutes are counted from what there is to read and to do, not measured on readers.
WORDS_A_MINUTE, SCRIPT_LINES_A_MINUTE, OTHER_LINES_A_MINUTE = 170, 12, 20
MINUTES_FOR_PART = {"# ": 2, "## Recall": 2, "## Break it": 2, "## Complete it": 4}
MINUTES_FOR_PART["## Checkpoint"] = 9
MINUTES_FOR_GUESS, MINUTES_FOR_PICTURE = 1, 0.75
MINUTES_MAY_BE_OFF = 0.25  # of what the headline says
WORDS_TO_AVOID = r"\b(simply|just|easy|obviously|of course)\b"

HEADLINE = re.compile(
    r"^You will (?P<promise>[^\n]+?)\.?(?: · |\n\n)(?P<minutes>\d+) min · (?P<ranks>\d+) ranks?\b"
    r"(?P<rest>[^\n]*)",
    re.MULTILINE,
)
# Whatever differs between two machines, or between two runs on one.
MACHINE_BOUND = {
    "an absolute path": r"(?<![\w.:/])/(?:home|Users|root|tmp|var|private|usr|opt|work|mnt|srv)/\w",
    "a Windows path": r"\b[A-Z]:\\\w",
    "a memory address": r"\b0x[0-9a-f]{6,}\b",
    "a process id": r"(?i)\b(?:pid|process id)\b\W{0,3}\d+",
    "a port": r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\]):\d{2,5}\b",
    "an object without a repr": r"<[\w.]+ (?:object|at 0x)",
}


def markdown(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def unfenced(notebook: NotebookNode) -> str:
    """The markdown without what stands in fences, such as commands."""
    return re.sub(r"^```.*?^```", "", "\n".join(markdown(notebook)), flags=re.M | re.S)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def raises(cell: NotebookNode) -> bool:
    return "raises-exception" in cell.metadata.get("tags", [])


def first_line(cell: NotebookNode) -> str:
    return cell.source.strip().partition("\n")[0]


# How it was executed


def executed(notebook: NotebookNode) -> list[str]:
    counts = [cell.execution_count for cell in code(notebook)]
    wanted = list(range(1, len(counts) + 1))
    return [] if counts == wanted else [f"execution counts are {counts}, not {wanted}"]


def quiet(notebook: NotebookNode) -> list[str]:
    found = []
    for cell in code(notebook):
        kinds = [out.get("name") or out.output_type for out in cell.outputs]
        if "stderr" in kinds:
            found.append(f"{first_line(cell)!r} wrote on stderr")
        if ("error" in kinds) != raises(cell):
            found.append(f"{first_line(cell)!r}: an error and the tag raises-exception go together")
    return found


def texts(notebook: NotebookNode) -> list[tuple[NotebookNode, str]]:
    """Everything in the outputs that nbval compares, by cell."""
    found = []
    for cell in code(notebook):
        for out in cell.outputs:
            found.append((cell, out.get("text") or out.get("data", {}).get("text/plain", "")))
            found.append((cell, out.get("evalue", "")))
    return found


def any_machine(notebook: NotebookNode) -> list[str]:
    patterns = dict(MACHINE_BOUND)
    host = socket.gethostname()
    if len(host) > 3 and host != "localhost":
        patterns["this machine's name"] = rf"\b{re.escape(host)}\b"
    return [
        f"the output of {first_line(cell)!r} holds {what}: {match.group()!r}"
        for cell, text in texts(notebook)
        for what, pattern in patterns.items()
        if (match := re.search(pattern, text))
    ]


def comparable(notebook: NotebookNode) -> list[str]:
    """A picture or a table without its sentence would pass whatever it shows."""
    found = []
    for cell in code(notebook):
        for out in cell.outputs:
            text = out.get("data", {}).get("text/plain", out.get("text", out.get("evalue", "")))
            if not text.strip() or re.match(r"<(Figure size|IPython\.core)", text):
                found.append(f"an output of {first_line(cell)!r} has no text to compare: {text!r}")
    return found


# How it is written


def prose(notebook: NotebookNode) -> list[str]:
    """The words of the markdown cells, folded ones too, without fenced code, tags and addresses."""
    text = "\n".join(markdown(notebook))
    text = re.sub(r"^(```|~~~).*?^\1", " ", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"</?\w[^>]*>", " ", text)
    return [word for word in text.split() if re.search(r"\w", word)]


def length(notebook: NotebookNode) -> list[str]:
    words, cells, (low, high) = len(prose(notebook)), len(code(notebook)), CODE_CELLS
    found = [f"{words} words of prose, over {MOST_WORDS}"] if words > MOST_WORDS else []
    return found + ([] if low <= cells <= high else [f"{cells} code cells, not {low} to {high}"])


def counted_minutes(notebook: NotebookNode) -> float:
    """How long a reader is likely to need: words, lines, and what there is to do."""
    words = len(prose(notebook)) / WORDS_A_MINUTE
    text = "\n" + unfenced(notebook)
    parts = sum(each * text.count(f"\n{mark}") for mark, each in MINUTES_FOR_PART.items())
    looking = 0.0
    for cell in code(notebook):
        looking += MINUTES_FOR_GUESS * ("guess = None" in cell.source)
        looking += len(cell.source.splitlines()) / OTHER_LINES_A_MINUTE
        shows = re.search(r"^show\(", cell.source, re.MULTILINE)
        rate = SCRIPT_LINES_A_MINUTE if shows else OTHER_LINES_A_MINUTE
        for out in cell.outputs:
            told = out.get("text") or out.get("data", {}).get("text/plain", out.get("evalue", ""))
            drawn = "image/png" in out.get("data", {})
            looking += MINUTES_FOR_PICTURE if drawn else len(told.splitlines()) / rate
    return words + parts + looking


def minutes_hold(notebook: NotebookNode) -> list[str]:
    match, counted = headline(notebook), counted_minutes(notebook)
    if not match or abs(counted / int(match["minutes"]) - 1) <= MINUTES_MAY_BE_OFF:
        return []
    return [f"the headline says {match['minutes']} min, and there is work for {counted:.0f}"]


def cell_sizes(notebook: NotebookNode) -> list[str]:
    sizes = [len(cell.source.splitlines()) for cell in code(notebook)]
    median = statistics.median(sizes)
    found = [f"the median cell has {median:g} lines"] if median > MEDIAN_LINES else []
    for cell, size in zip(code(notebook), sizes, strict=True):
        most = MOST_RANKS_LINES if cell.source.startswith("%%ranks") else MOST_LINES
        if size > most:
            found.append(f"{first_line(cell)!r} has {size} lines, over {most}")
    return found


def headings(notebook: NotebookNode) -> list[str]:
    titles = re.findall(r"^# .+", unfenced(notebook), re.MULTILINE)
    first = markdown(notebook)[0] if markdown(notebook) else ""
    if len(titles) != 1 or not first.startswith("# ") or notebook.cells[0].source != first:
        return [f"one title, in the first line of the first cell; found {titles}"]
    return []


def title(notebook: NotebookNode) -> str:
    return first_line(notebook.cells[0]).removeprefix("# ").strip()


def headline(notebook: NotebookNode) -> re.Match | None:
    """The match of HEADLINE above the first code cell."""
    head = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            break
        head.append(cell.source)
    return HEADLINE.search("\n\n".join(head))


def promises(notebook: NotebookNode) -> list[str]:
    match = headline(notebook)
    if not match:
        return ["no headline 'You will ... · NN min · R ranks on any laptop · needs NN · ...'"]
    terms = re.search(r"new terms: ([^·\n]+)", match["rest"])
    count = len(terms[1].split(",")) if terms else 0
    found = [] if " · needs " in match["rest"] else ["the headline does not say what it needs"]
    return found + ([f"{count} new terms, over {MOST_TERMS}"] if count > MOST_TERMS else [])


def recall(notebook: NotebookNode) -> list[str]:
    """Three questions, with folded answers, before the first code cell."""
    head = ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            break
        head += cell.source + "\n\n"
    _, found, questions = head.partition("Recall")
    if not found:
        return ["no Recall before the first code cell"]
    asked = re.sub(r"<details>.*?</details>", "", questions, flags=re.S).count("?")
    folded = re.findall(r"<summary>([^<]*)</summary>", questions)
    asked += sum("?" in text for text in folded)
    return [] if asked >= 3 and folded else [f"Recall asks {asked} questions, {len(folded)} folded"]


def guesses(notebook: NotebookNode) -> list[str]:
    """Every guess that is asked for is compared before the next one is."""
    open_guess, found = None, []
    for cell in code(notebook):
        if open_guess and re.search(rf"\bcompare\(\s*{open_guess}\b", cell.source):
            open_guess = None
        asked = re.search(r"^(\w*guess\w*) = None", cell.source, re.MULTILINE)
        if asked:
            found += [f"{open_guess} is asked for and never compared"] if open_guess else []
            rest = cell.source[asked.end() :]
            compared = re.search(rf"\bcompare\(\s*{asked[1]}\b", rest)
            open_guess = None if compared else asked[1]
    return found + ([f"{open_guess} is asked for and never compared"] if open_guess else [])


def asks(notebook: NotebookNode, lesson: str) -> list[str]:
    """The lesson's questions are its first code cell, below Recall, and stand just before the
    questions without scrolling; their answers are left to the reader."""
    cells, found = notebook.cells, []
    wanted = {when: f'questions("{lesson}", {when}=None)' for when in ("before", "after")}
    calls = [(n, c.source) for n, c in enumerate(cells) if "questions(" in c.source]
    calls = [(n, source) for n, source in calls if cells[n].cell_type == "code"]
    if len(calls) != 2 or not all(
        call in source for (_, source), call in zip(calls, wanted.values(), strict=True)
    ):
        return [f"{' and then '.join(wanted.values())}, once each: found {len(calls)}"]
    if calls[0][1] != code(notebook)[0].source:
        found.append("the questions before the lesson are not in its first code cell")
    below = cells[calls[1][0] + 1].source if len(cells) > calls[1][0] + 1 else ""
    if not below.startswith("## Without scrolling"):
        found.append("the questions after the lesson are not just before 'Without scrolling'")
    return found


def lists(notebook: NotebookNode) -> list[str]:
    """Markdown draws "2. 3." as a list in a list: with a letter, C, in place of the answer."""
    text = "\n".join(markdown(notebook))
    found = re.findall(r"^\s*(?:\d+\.|[-*+]) \d+[.)](?: .*)?$", text, re.MULTILINE)
    return [f"{line!r} begins a list in a list" for line in found]


def tone(notebook: NotebookNode) -> list[str]:
    text = "\n".join(markdown(notebook))
    return [
        f"the word {match.group()!r}: …{text[max(0, match.start() - 30) : match.end() + 20]!r}…"
        for match in re.finditer(WORDS_TO_AVOID, text, re.IGNORECASE)
    ]


def links(text: str, folder: Path, root: Path) -> list[str]:
    """The links in markdown, as seen from `folder`, that lead nowhere or out of the project."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)
    targets = re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
    found = []
    for target in targets:
        if re.match(r"(https://|mailto:|#|data:)", target):
            continue
        path = (folder / target.partition("#")[0]).resolve()
        if "://" in target or not path.exists() or not path.is_relative_to(root.resolve()):
            found.append(f"the link to {target} leads nowhere")
    return found
