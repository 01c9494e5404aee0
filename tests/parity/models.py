"""What several harnesses run in the ranks: small models of each kind, and how far sets of tensors
are apart. Text, because a rank runs a script of its own."""

MODELS = '''
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x).tanh())


def make(kind, seed):
    torch.manual_seed(seed)
    if kind == "tied":
        return Tied()
    norm = nn.BatchNorm1d(6) if kind == "norm" else nn.Tanh()
    model = nn.Sequential(nn.Linear(6, 6), norm, nn.Linear(6, 6))
    if kind == "frozen":
        model[0].weight.requires_grad_(False)
        model[2].bias.requires_grad_(False)
    return model


def gap(ones, others):
    """The largest difference; what is None on one side must be None on the other."""
    ones, others = list(ones), list(others)
    assert [one is None for one in ones] == [other is None for other in others]
    pairs = [(a, b) for a, b in zip(ones, others) if a is not None]
    return max(((a - b).abs().max().item() for a, b in pairs), default=0.0)
'''
