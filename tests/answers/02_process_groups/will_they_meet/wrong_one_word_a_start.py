# diagnosis: form
def will_they_meet():
    return {"A": "waits", "B": "goes on", "C": "raises", "D": "waits", "E": "goes on"}
