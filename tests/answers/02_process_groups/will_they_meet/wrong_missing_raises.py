# diagnosis: missing_raises
# one short of WORLD_SIZE is an error
def will_they_meet():
    return {
        "A": ["raises", "raises", "raises"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
