TEXT = """
A: waits, waits, waits
B: goes on, goes on
C: waits, raises
D: waits, waits
E: goes on, goes on, raises
"""


def will_they_meet():
    lines = [line.split(": ") for line in TEXT.strip().splitlines()]
    return {start: words.split(", ") for start, words in lines}
