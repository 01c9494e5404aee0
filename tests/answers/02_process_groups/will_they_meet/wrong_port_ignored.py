# diagnosis: port_ignored
# three processes, WORLD_SIZE 3, so they meet
def will_they_meet():
    return {
        "A": ["goes on", "goes on", "goes on"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
