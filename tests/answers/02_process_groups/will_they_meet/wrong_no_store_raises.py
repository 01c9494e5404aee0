# diagnosis: no_store_raises
# 2 of 2 is out of range
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "raises"],
        "E": ["goes on", "goes on", "raises"],
    }
