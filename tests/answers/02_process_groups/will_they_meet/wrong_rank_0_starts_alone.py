# diagnosis: alone
# rank 0 is the master: it starts, the others wait for it
def will_they_meet():
    return {
        "A": ["goes on", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["goes on", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
