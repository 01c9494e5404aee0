# diagnosis: nothing_returned
def will_they_meet():
    print("A: waits, waits, waits")
    print("B: goes on, goes on")
    print("passed")
