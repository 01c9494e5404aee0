# diagnosis: twin_waits
# both wait for a rank 1
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "waits"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
