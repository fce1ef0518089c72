"""The time left: nothing is shown before it is known, and what is shown is right within a factor of two."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from closerlook.study.cells import Cell
from closerlook.study.remaining import NEEDED_CELLS, RemainingTime
from closerlook.study.sizes import Estimate

ORDER = {"extract": 0, "tune": 2}
PILOT, REST = 1, 3


def cell(kind: str, number: int, guess: float, source: str = "") -> Cell:
    content = {"number": number, "guess": guess, "source": source}
    return Cell(kind, 1, content, {}, (), f"{kind} {number}")


def estimate(known: Cell) -> Estimate:
    return Estimate(known.content["guess"], 1, 1)


@dataclass
class Simulation:
    """Cells that take `true` times their estimate, times some noise, on several workers with a clock of their own."""

    true: dict[str, float]
    workers: int
    noise: float = 0.3
    seed: int = 0
    now: float = 0.0
    shown: list[tuple[float, float, float | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - times, not secrets
        self.time = RemainingTime(estimate, self.workers, lambda: self.now)
        self.pilots: Counter[str] = Counter()

    def cost(self, known: Cell) -> float:
        return known.content["guess"] * self.true[known.kind] * self.random.lognormvariate(0, self.noise)

    def run(self, cells: list[Cell], brings: Callable[[Cell], list[Cell]] = lambda cell: []) -> "Simulation":
        """Run all cells, and those that fine-tunings bring; note what is shown after every cell."""
        queue: list[tuple[int, float, str, Cell]] = []
        running: list[tuple[float, str, Cell, float]] = []
        done = 0.0

        def add(new: list[Cell]) -> None:
            for one in sorted(new, key=lambda one: -one.content["guess"]):
                pilot = self.time.needs_pilot(one.kind, self.pilots[one.kind])
                self.pilots[one.kind] += pilot
                rank = ORDER.get(one.kind, PILOT if pilot else REST)
                heapq.heappush(queue, (rank, -one.content["guess"], one.key, one))
                self.time.expect(one)

        add(cells)
        for one in cells:
            if coming := brings(one):
                self.time.expect_from(one.key, coming)
        while queue or running:
            while queue and len(running) < self.workers:
                *_, one = heapq.heappop(queue)
                cost = self.cost(one)
                self.time.begin(one)
                heapq.heappush(running, (self.now + cost, one.key, one, cost))
            self.now, _, one, cost = heapq.heappop(running)
            self.time.finish(one, cost)
            done += cost
            self.time.arrived(one.key)
            add(brings(one))
            self.shown.append((self.now, done, self.time.seconds()))
        return self

    def check(self) -> list[float]:
        """Compare what was shown after a tenth of the work with what happened; the times at which it was shown."""
        end, total = self.shown[-1][0], self.shown[-1][1]
        for now, done, seconds in self.shown:
            if done >= total / 10 and seconds is not None:
                left, slack = end - now, 0.02 * end
                assert left / 2 - slack <= seconds <= 2 * left + slack, (now / end, left, seconds)
        return [now / end for now, _, seconds in self.shown if seconds is not None]


def study(random: Random, tunes: int) -> tuple[list[Cell], Callable[[Cell], list[Cell]]]:
    """An extraction, cells of several kinds on the pretrained encoder, and fine-tunings that bring more of them."""
    kinds = {"geometry": (12, 0.5, 4), "comparison": (12, 0.1, 0.1), "panel": (6, 1, 5), "classifier": (3, 2, 6)}

    def measured(source: str) -> list[Cell]:
        guesses = [(kind, random.uniform(low, high)) for kind, (n, low, high) in kinds.items() for _ in range(n)]
        return [cell(kind, number, guess, source) for number, (kind, guess) in enumerate(guesses)]

    fine_tunings = [cell("tune", number, random.uniform(10, 40)) for number in range(tunes)]
    bring = {one.key: measured(one.key) for one in fine_tunings}
    return [cell("extract", 0, 4), *measured(""), *fine_tunings], lambda one: bring.get(one.key, [])


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(20))
def test_guesses_that_are_wrong_by_thirty_are_corrected(seed: int, workers: int) -> None:
    random = Random(seed)  # noqa: S311 - times, not secrets
    kinds = ("extract", "tune", "geometry", "comparison", "panel", "classifier")
    true = {kind: 30 ** random.uniform(-1, 1) for kind in kinds}
    simulation = Simulation(true, workers, seed=seed)
    times = simulation.run(*study(random, tunes=6)).check()
    assert times, "nothing was shown"


def test_a_study_without_fine_tunings_shows_its_time_early() -> None:
    cells, _ = study(Random(0), tunes=0)  # noqa: S311 - times, not secrets
    simulation = Simulation({"extract": 30, "geometry": 0.03, "comparison": 1, "panel": 10, "classifier": 0.5}, 2)
    assert simulation.run(cells).check()[0] < 0.65


def test_nothing_is_shown_before_every_kind_is_measured() -> None:
    simulation = Simulation({"geometry": 1, "panel": 20}, 1)
    geometry = [cell("geometry", number, 1) for number in range(10)]
    remaining = simulation.time
    panel = cell("panel", 0, 5)
    for known in [*geometry, panel]:
        remaining.expect(known)
    assert remaining.seconds() is None
    remaining.finish(geometry[0], 1)
    assert remaining.seconds() is None
    remaining.finish(panel, 100)
    assert remaining.seconds() == pytest.approx(9)


def test_a_resumed_study_knows_its_rates_from_the_start() -> None:
    remaining = RemainingTime(estimate, 2, lambda: 0.0)
    for number in range(4):
        remaining.expect(cell("geometry", number, 1))
    remaining.learn(cell("geometry", 9, 2), 60)
    assert remaining.seconds() == pytest.approx(4 * 30 / 2)


def test_a_kind_without_a_time_takes_the_ratio_of_the_others() -> None:
    remaining = RemainingTime(estimate, 1, lambda: 0.0)
    remaining.learn(cell("geometry", 0, 1), 10)
    assert remaining.expected_seconds(cell("panel", 0, 3)) == pytest.approx(30)


def test_one_long_cell_is_not_shared_by_workers() -> None:
    clock = [0.0]
    remaining = RemainingTime(estimate, 4, lambda: clock[0])
    long = cell("tune", 0, 100)
    for number in (1, 2):
        remaining.learn(cell("tune", number, 100), 100)
    remaining.expect(long)
    remaining.begin(long)
    assert remaining.seconds() == pytest.approx(100)
    clock[0] = 30.0
    assert remaining.seconds() == pytest.approx(70, rel=0.1)
    for late in (90.0, 150.0, 1e9):  # nobody knows how much longer it takes
        clock[0] = late
        assert remaining.seconds() is None


def test_the_first_of_several_that_began_together_is_not_trusted_alone() -> None:
    clock = [0.0]
    remaining = RemainingTime(estimate, 2, lambda: clock[0])
    tunes = [cell("tune", number, 10) for number in range(4)]
    for known in tunes:
        remaining.expect(known)
    for known in tunes[:2]:
        remaining.begin(known)
    clock[0] = 4.0
    remaining.finish(tunes[0], 4)
    remaining.begin(tunes[2])
    assert remaining.seconds() is None
    clock[0] = 10.0
    remaining.finish(tunes[1], 10)
    assert remaining.seconds() is not None


def test_cells_are_not_divided_among_workers() -> None:
    remaining = RemainingTime(estimate, 2, lambda: 0.0)
    for number in (7, 8):
        remaining.learn(cell("tune", number, 10), 10)
    for number in range(3):
        remaining.expect(cell("tune", number, 10))
    assert remaining.seconds() == pytest.approx(20)


def test_cells_that_a_fine_tuning_brings_count_until_they_are_known() -> None:
    remaining = RemainingTime(estimate, 1, lambda: 0.0)
    tune, coming = cell("tune", 0, 10), [cell("geometry", number, 1) for number in range(5)]
    remaining.expect(tune)
    remaining.expect_from(tune.key, coming)
    remaining.learn(tune, 10)
    remaining.learn(coming[0], 1)
    assert remaining.seconds() == pytest.approx(15)
    remaining.drop(tune)
    remaining.arrived(tune.key)
    assert remaining.seconds() == 0


def test_cells_on_the_gpu_that_a_fine_tuning_will_add_wait_for_the_gpu_too() -> None:
    remaining = RemainingTime(estimate, 8, lambda: 0.0)
    remaining.gpu_workers = 2
    tune = Cell("tune", 1, {"guess": 10.0}, {}, (), "tune", gpu=True)
    remaining.expect(tune)
    coming = [Cell("classifier", 1, {"guess": 10.0, "number": at}, {}, (), f"{at}", gpu=True) for at in range(15)]
    remaining.expect_from(tune.key, coming)
    for one in (tune, coming[0]):
        for _ in range(NEEDED_CELLS):
            remaining.learn(one, 10.0)
    assert remaining.seconds() == pytest.approx((10 + 150) / 2)
