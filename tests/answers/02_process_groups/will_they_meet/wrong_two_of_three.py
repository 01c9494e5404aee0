# diagnosis: two_of_three
# the two at the right port begin without the third
def will_they_meet():
    return {
        "A": ["goes on", "goes on", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
