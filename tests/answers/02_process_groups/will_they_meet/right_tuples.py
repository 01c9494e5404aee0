def will_they_meet():
    waits, goes_on = ("waits",), ("goes on",)
    return {
        "E": goes_on * 2 + ("raises",),
        "D": waits * 2,
        "C": waits + ("raises",),
        "B": goes_on * 2,
        "A": waits * 3,
    }
