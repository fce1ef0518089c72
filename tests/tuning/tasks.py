"""Small tasks of each unit, cut out of the embedded ones."""

from functools import cache

from closerlook.tasks import load_task
from closerlook.tasks.task import Annotated, Split, Task, Unit

SOURCE = {"token": "toy-pos", "pair": "toy-dep", "span": "toy-pos", "sentence": "toy-question"}


@cache
def small(unit: Unit = "token", texts: int = 40, tests: int = 12) -> Task:
    """The first texts of an embedded task; a span is a word of toy-pos and the one before it, if there is one."""
    whole = load_task(SOURCE[unit])
    sizes = {"train": texts, "test": tests}
    return Task.build(
        f"small-{unit}", unit, {name: cut(whole, whole.split(name), unit, n) for name, n in sizes.items()}
    )


def cut(task: Task, split: Split, unit: Unit, texts: int) -> list[Annotated]:
    found: list[Annotated] = []
    for number, text in enumerate(split.texts[:texts]):
        targets = []
        for row in (split.sentence == number).nonzero()[0]:
            where = tuple(map(int, split.positions[row]))
            if unit == "span":
                where = (max(0, where[0] - 1), where[0] + 1)
            targets.append((where, task.labels[split.y[row]]))
        found.append((text, targets))
    return found
