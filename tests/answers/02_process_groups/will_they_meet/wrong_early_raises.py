# diagnosis: early_raises
# connection refused: there is no store when rank 1 comes
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["raises", "waits"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
