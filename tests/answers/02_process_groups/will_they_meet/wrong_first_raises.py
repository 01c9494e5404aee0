# diagnosis: first_raises
# the second one breaks the first one's store
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["raises", "waits"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
