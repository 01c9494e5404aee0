# diagnosis: third_disturbs
# an error in one process ends them all
def will_they_meet():
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["raises", "raises", "raises"],
    }
