"""What the mistakes in the exercises of lesson 07 usually are, under the requirement they break."""

from __future__ import annotations

_SAMPLER = {
    "deal": {
        "blocks": "These are blocks. The samples are dealt like cards: rank 0 gets the first, "
        "rank 1 the second, and so on, round after round.",
        "samples": "A sampler gives numbers of samples, not samples: the loader looks them up.",
        "zero_is_none": "Where rank 0 was asked for, this gives the shard of the process itself. "
        "0 counts as False: `rank or ...` throws a given 0 away. Ask whether it is None.",
        "arguments_ignored": "This is the shard of the process's own place in the group. "
        "num_replicas and rank count where they are given; the group is asked where they are None.",
        "always_two": "This is the shard of one of 2 ranks, whatever the number of ranks is.",
        "used_up": "The first pass is right, and the next one gives nothing. __iter__ is called "
        "for each pass, and begins anew each time.",
        "no_iterator": "__iter__ returns an iterator: iter() makes one of a list.",
        "one_iterator": "How far a pass has come is kept in the sampler, so passes disturb each "
        "other. Each call of __iter__ returns a new iterator, which begins at the start.",
    },
    "padding": {
        "pads_from_end": "The padding was taken from the end of the order. torch begins again at "
        "its start.",
        "slice_of_zero": "Where nothing is missing, the slice [-0:] is the whole order, not an "
        "empty list. And torch pads from the start of the order.",
        "pads_with_one": "One sample is repeated as all of the padding. torch takes the order's "
        "first, second, ... as far as it must.",
        "pads_once": "The order was gone through once for the padding. With far fewer samples than "
        "ranks that is not enough: begin again as often as it takes.",
        "pads_own_shard": "A short shard was filled with its own samples. torch pads the order of "
        "all ranks first, and deals then.",
        "pads_unshuffled": "The padding is 0, 1, 2, ..., whatever the order. torch goes on with "
        "the start of the shuffled order.",
        "pads_before_shuffling": "The padding was shuffled in with the samples. torch shuffles "
        "first, and pads the shuffled order.",
        "one_round_more": "Where the samples divide, nothing is missing, and there is no padding: "
        "round up, do not add one.",
        "drops": "What does not divide was left out, as with drop_last. Here it is padded.",
        "no_padding": "The shards are not equally long. In training, ranks with more samples would "
        "wait for the others: pad up to a multiple of the ranks.",
        "wrong_len": "len() of a sampler is how many samples this rank gets in an epoch, padding "
        "counted, and an int. A DataLoader counts its steps by it.",
    },
    "order": {
        "always_shuffles": "With shuffle=False the order is 0, 1, 2, ...",
        "never_shuffles": "shuffle is True unless the caller says otherwise. The order is "
        "randperm's then.",
        "seed_by_rank": "Some samples go to several ranks, others to nobody: the ranks do not "
        "shuffle alike. Nothing that differs between ranks may go into the generator's seed.",
        "shuffles_shard": "Each rank gets its unshuffled shard in another order, the same samples "
        "for ever. Shuffle all samples first, and deal then.",
        "with_replacement": "Samples come more than once where nothing is padded: they were drawn "
        "with replacement. An order has each sample once: randperm.",
        "no_set_epoch": "All epochs have the same order: what set_epoch was told does not reach "
        "the generator. The order is made anew for each pass, from seed + epoch.",
        "no_seed": "All seeds give the same order: the seed does not reach the generator.",
        "epochs_add_up": "Earlier calls of set_epoch count in. The order depends on the seed and "
        "the epoch that was told last, on nothing else.",
        "shared_epoch": "All samplers of a process have the epoch that one of them was told "
        "last. Keep it in self, not in the class or in a global name.",
        "goes_on": "Two passes in the same epoch have different orders. Nothing may go on from "
        "where the last pass left it: make a generator for each pass, and seed it.",
        "another_order": "The ranks share one order of all samples, but not torch's: that is "
        "torch.randperm, from a torch.Generator seeded with seed + epoch.",
    },
    "alone": {
        "torchs_own": "The exercise is to write what torch's sampler does.",
        "global_random": "Whatever else in the process draws random numbers, now draws others. "
        "Give randperm a torch.Generator of your own.",
        "communicates": "Every rank can work out its shard from the seed, the epoch and its rank. "
        "A call to the other ranks costs time, and waits where they do not make it.",
    },
}
SAMPLER = {name: text for group in _SAMPLER.values() for name, text in group.items()}
REQUIREMENT = {name: group for group, names in _SAMPLER.items() for name in names}

ACCURACY = {
    "one_rank": "One rank has the sums of all, another has not. Every rank needs them: a "
    "reduce or a gather gives them to one, an all_reduce to all.",
    "gave_back_none": "all_reduce gives nothing back: the sum stands in the tensor that it was "
    "handed.",
    "rank_0_alone": "Only one rank made the call. A collective needs all of them: make it outside "
    "of `if rank == 0`.",
    "empty_rank_skips": "The ranks that have nothing but padding made no call, and the others wait "
    "for them. Add zeros, and make the call all the same.",
    "padding_counted": "Samples that the sampler gave out once more were counted once more. In its "
    "own shard a rank sees them once only: another rank has the first.",
    "others_left_out": "As many samples as there are, but not each of them once: others were left "
    "out than those that the sampler added. They are the last to be dealt.",
    "too_many_left_out": "Every rank left its last sample out. Only some of the ranks have padding "
    "there.",
    "reduced_again": "What was a sum over all ranks already went into a sum over all ranks once "
    "more. Count all batches, then reduce once.",
    "by_prediction": "This counts how often each class was predicted. seen is about labels: how "
    "many samples of the class there are.",
    "padding_in_right": "The padding counts among the samples that are right (right), and not "
    "among all of them (seen).",
    "padding_in_seen": "The padding counts among all samples (seen), and not among those that are "
    "right (right).",
    "only_right": "seen is exact: only right is to be mended. Of each class, it counts the samples "
    "whose prediction is their label, so it is never more than seen.",
    "short_counts": "Counts must have `classes` entries on every rank, with a 0 for each class "
    "that the rank has not seen. bincount stops at the highest number that it sees, unless it is "
    "told a minlength.",
    "integer_division": "It was rounded down to a whole number, as // does.",
    "mean_of_rates": "This is a mean of the rates of ranks or of batches. They do not all have as "
    "many samples: add up right and seen, then divide once.",
    "mean_of_classes": "This is the mean of the classes' accuracies. Here each sample counts "
    "alike, whatever its class.",
    "own_rate": "This is the accuracy of this rank's own samples.",
}
