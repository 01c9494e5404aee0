# diagnosis: too_many
# the group grows
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "goes on"],
    }
