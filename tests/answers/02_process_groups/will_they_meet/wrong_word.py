# diagnosis: form
def will_they_meet():
    return {
        "A": ["hangs", "hangs", "hangs"],
        "B": ["goes on", "goes on"],
        "C": ["hangs", "error"],
        "D": ["hangs", "hangs"],
        "E": ["goes on", "goes on", "error"],
    }
