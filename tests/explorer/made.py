"""Spaces of a made-up training: three labels that move apart, with words, in a few dozen points."""

import numpy as np

from closerlook.representations.space import Space

LABELS = ("ADJ", "NOUN", "VERB")


def training(n: int = 60, snapshots: int = 3, d: int = 5, *, split: str = "train", seed: int = 0) -> list[Space]:
    """The same n examples at each snapshot. At the first one, the labels overlap; at the last, they do not."""
    random = np.random.default_rng([seed, split == "test"])
    codes = np.arange(n) % len(LABELS)
    start = random.normal(size=(n, d))
    centres = 12.0 * np.eye(len(LABELS), d)[codes]
    words = [f"word{at}" for at in range(n)]
    shares = np.linspace(0.0, 1.0, snapshots) if snapshots > 1 else [0.0]
    return [
        Space.from_arrays(
            start + share * centres,
            np.array(LABELS)[codes],
            words=words,
            encoder="made",
            checkpoint=f"tuned on made, step {at}",
            layer=2,
            task="made",
            split=split,
        )
        for at, share in enumerate(shares)
    ]
