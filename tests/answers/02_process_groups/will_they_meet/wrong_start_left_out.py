# diagnosis: form
def will_they_meet():
    return {"A": ["waits"] * 3, "B": ["goes on"] * 2, "C": ["waits", "raises"], "D": ["waits"] * 2}
