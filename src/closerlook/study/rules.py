"""The rules, version 2, by which a pair of encoder and task answers the question of each finding."""

from __future__ import annotations

import hashlib

from closerlook.study.noise import HARM
from closerlook.study.verdicts import RULE

VERSION = 2
"""The version of the rules. Raise it when a rule changes, and keep the rules before in `earlier_rules`."""

NOISE = (
    "Beyond noise: the change, averaged over seeds, is larger than the half-width of its 95% interval over examples "
    "(the half-widths before and after fine-tuning, added as squares) and, with several seeds, than the half-width of "
    "the 95% interval of its mean over seeds (Student's t)."
)

RULES = {
    1: "A pair supports the finding if, at the last layer, the spatial similarity of train and test falls beyond noise "
    "by fine-tuning, and accuracy does not fall beyond its noise. It contradicts the finding if the similarity rises "
    "beyond noise, or if accuracy falls beyond its noise, which is 1.96 standard errors. A standard error combines the "
    "test examples, the probes, and the seeds. If accuracy was not measured, similarity alone decides. Other pairs are "
    "within noise; a pair has no answer if the similarity has no interval over examples. That there is no harm is a "
    f"separate equivalence test: at a level of 5%, accuracy falls by less than {100 * HARM:.0f} percentage points. "
    f"{NOISE}",
    2: "A pair supports the finding if, at the last layer, train has fewer clusters after fine-tuning than before, "
    "beyond noise, and contradicts it if train has more, beyond noise. Other pairs are within noise. Beyond noise: the "
    "change is larger than 1.96·√(before + after), where before and after are the numbers of clusters above the lowest "
    "possible number, taken as Poisson counts; with several seeds, also larger than the half-width of the 95% interval "
    "of its mean over seeds (Student's t). The lowest possible number is one for each label plus one for each point "
    "that has the same vector as a point of another label. A pair has no answer if the clusters were not counted, or "
    "if their number was the lowest possible both before and after.",
    3: "A pair supports the finding if, at the last layer, on train, the mean distance of a label to the nearest other "
    "label grows beyond noise by fine-tuning, and more labels move farther away than closer, each beyond its own "
    "noise. It contradicts the finding if this mean falls beyond noise, and more labels move closer than farther away. "
    f"Other pairs are within noise; a pair has no answer if distances have no intervals over examples. {NOISE}",
    4: "A pair is an encoder that was fine-tuned on one task and measured on another. After fine-tuning on a related "
    "task, it supports the finding if the mean distance of a label to the nearest other label, on train at the last "
    "layer, grows beyond noise, and more labels move farther away than closer, each beyond its own noise; after "
    "fine-tuning on an opposed task, if this mean falls beyond noise, and more labels move closer than farther away. "
    "It contradicts the finding if the opposite is true. Other pairs are within noise; a label that does not move "
    "beyond its noise is neither closer nor farther away. Related: at least half of all label names of the two tasks "
    "occur in both. Opposed: fine-tuned on pos (or toy-pos), which gives all prepositions one label, and measured on "
    "ps-role or ps-fxn (toy-role, toy-fxn), which distinguish them. A pair has no answer if the tasks are neither, or "
    "if distances have no intervals over examples. The finding makes two claims, so it holds only if three quarters of "
    f"the pairs with an answer support it both for related and for opposed tasks. {NOISE}",
    5: "A pair supports the finding if three conditions are met. (1) The last layer changes by more than seeds and "
    "samples differ: its spatial similarity to the pretrained encoder is lower than the similarity of two seeds of the "
    "same fine-tuning and than the similarity of two halves of train in the pretrained encoder, where these were "
    "measured. (2) Upper layers change more: the mean similarity to the pretrained encoder over the upper half of the "
    "layers is below that over the lower half by more than the margin. (3) The change is not arbitrary: at the last "
    "layer, the similarity to the pretrained encoder is above the similarity to the same encoder with random weights "
    "by more than the margin. The margin is the half-width of the 95% interval over examples of the similarity to the "
    "pretrained encoder at the last layer, or, if larger, of the 95% interval over seeds of the difference. A pair "
    "contradicts the finding if condition 1 is met and the difference in 2 or 3 is beyond its margin in the other "
    "direction. Other pairs are within noise. A pair has no answer if one of these similarities was not measured. "
    "Layer 0 (the embeddings) counts as a layer; if the number of layers is odd, the middle one is in neither half.",
}
"""How a pair answers the question of each finding."""


def rules_hash() -> str:
    """Eight characters that identify the text of all rules."""
    return hashlib.sha256("\n".join([*RULES.values(), RULE]).encode()).hexdigest()[:8]
