"""Small tasks of each unit, cut out of the embedded ones."""

from functools import cache

from closerlook.tasks import load_task
from closerlook.tasks.task import Annotated, Split, Task, Unit

SOURCE = {"token": "toy-pos", "pair": "toy-dep", "span": "toy-pos", "sentence": "toy-question"}


@cache
def small(unit: Unit = "token", texts: int = 40, tests: int = 12) -> Task:
    """The first texts of an embedded task; a span is a word of toy-pos with the word before it, if any."""
    whole = load_task(SOURCE[unit])
    sizes = {"train": texts, "test": tests}
    return Task.build(
        f"small-{unit}", unit, {name: cut(whole, whole.split(name), unit, n) for name, n in sizes.items()}
    )


def cut(task: Task, split: Split, unit: Unit, texts: int) -> list[Annotated]:
    annotated: list[Annotated] = []
    for number, text in enumerate(split.texts[:texts]):
        targets = []
        for row in (split.sentence == number).nonzero()[0]:
            positions = tuple(map(int, split.positions[row]))
            if unit == "span":
                positions = (max(0, positions[0] - 1), positions[0] + 1)
            targets.append((positions, task.labels[split.y[row]]))
        annotated.append((text, targets))
    return annotated
