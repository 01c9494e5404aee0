# diagnosis: wrong_port_raises
# connection refused, at once
def will_they_meet():
    return {
        "A": ["waits", "waits", "raises"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
