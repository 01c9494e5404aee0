# diagnosis: from_one
# two came, two were expected
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["goes on", "goes on"],
        "E": ["goes on", "goes on", "raises"],
    }
