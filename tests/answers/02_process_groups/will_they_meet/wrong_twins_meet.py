# diagnosis: twins_meet
# two processes for WORLD_SIZE 2
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["goes on", "goes on"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
