# diagnosis: early_waits
# rank 1 missed the opening, so both wait for ever
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["waits", "waits"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
