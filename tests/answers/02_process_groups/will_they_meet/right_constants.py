WAITS, RAISES, GOES_ON = "waits", "raises", "goes on"


def will_they_meet():
    prediction = dict(A=[WAITS] * 3, B=[GOES_ON] * 2, D=[WAITS] * 2)
    prediction["C"] = [WAITS, RAISES]
    prediction["E"] = [GOES_ON, GOES_ON, RAISES]
    return prediction
