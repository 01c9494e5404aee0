# diagnosis: no_work
def overlap(model):
    return lambda: None
