"""Exercises and what must hold for an answer: one file a lesson, beside the harness they share.

An answer is examined by examine.py on real ranks, one launch for each case, and judged by grade.py
in the process that asked, against a reference of its own. Nothing that the answer prints, records
or returns can say that it passed.
"""
