# diagnosis: late_raises
def will_they_meet():
    return {
        "A": ["waits"] * 3,
        "B": ["waits", "raises"],
        "C": ["waits", "raises"],
        "D": ["waits"] * 2,
        "E": ["goes on", "goes on", "raises"],
    }
