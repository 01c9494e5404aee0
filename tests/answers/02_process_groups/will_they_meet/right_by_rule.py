STARTS = {  # (RANK, WORLD_SIZE, right port), in the order of time
    "A": [(0, 3, True), (1, 3, True), (2, 3, False)],
    "B": [(1, 2, True), (0, 2, True)],
    "C": [(0, 2, True), (0, 2, True)],
    "D": [(1, 2, True), (2, 2, True)],
    "E": [(0, 2, True), (1, 2, True), (2, 2, True)],
}


def fate(start, number):
    rank, size, here = start[number]
    came = {r for r, _, right in start if right}
    if here and (rank, size, here) in start[:number]:
        return "raises"  # the address is taken
    if not here or 0 not in came:
        return "waits"  # nobody serves a store there
    if rank >= size:
        return "raises"
    return "goes on" if came >= set(range(size)) else "waits"


def will_they_meet():
    return {name: [fate(start, n) for n in range(len(start))] for name, start in STARTS.items()}
