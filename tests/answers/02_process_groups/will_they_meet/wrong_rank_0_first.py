# diagnosis: alone
# rank 0 opens the store and is done
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["goes on", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
