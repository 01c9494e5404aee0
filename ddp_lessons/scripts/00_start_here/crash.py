"""Each rank reads a file of its own."""

import os

from ddp_lessons.worker import record

rank = int(os.environ["RANK"])
files = ["part_0.csv"]

mine = files[rank]
record("mine", file=mine)
