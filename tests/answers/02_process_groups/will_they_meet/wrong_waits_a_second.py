# diagnosis: short_wait
# rank 1 is early: it waits, a second
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["waits", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
