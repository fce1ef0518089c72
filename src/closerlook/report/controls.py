"""The table of controls of the classifier probes: selectivity, and description length of the labels."""

from __future__ import annotations

from closerlook.report.layer_values import by_encoder_and_layer, layer_values
from closerlook.report.measures import title_of
from closerlook.report.tables import Column, Table, Value, count_of, text_columns
from closerlook.study.readings import Results
from closerlook.study.registry import measure

MEASURES = ("accuracy", "control_accuracy", "selectivity", "known_words", "description_length", "compression")
OWN = ("control_accuracy", "description_length")
"""The measures without which a space has no row."""


def control_table(results: Results) -> Table:
    """Selectivity and description length of every space of which they were measured."""
    rows: list[tuple[Value, ...]] = []
    for task in results.tasks:
        for place, cells in by_encoder_and_layer(results, layer_values(results, task, MEASURES)).items():
            if any(name in cells for name in OWN):
                rows.append((task, *place, *(cells[name].measurement if name in cells else None for name in MEASURES)))
    columns = (
        *(*text_columns("task", "encoder", "state"), Column("layer")),
        *(Column(title_of(name), digits=measure(name).digits, signed=name == "selectivity") for name in MEASURES),
    )
    note = (
        "Means over seeds. Accuracy, control tasks and known words: on the test split; known words: the share of its "
        "examples whose word also occurs in train. Description length and compression: on train."
    )
    return Table("control", "Selectivity and description length", note, columns, tuple(rows)).without_empty()


def control_text(results: Results) -> str:
    """How to read selectivity and description length; empty if neither was measured."""
    spaces = [
        cells
        for task in results.tasks
        for cells in by_encoder_and_layer(results, layer_values(results, task, MEASURES)).values()
    ]
    selectivities = [cells["selectivity"].measurement.value for cells in spaces if "selectivity" in cells]
    sentences = []
    if selectivities:
        above = sum(value > 0 for value in selectivities)
        sentences.append(
            "A control task gives each word a random label, the same in train and test (Hewitt & Liang 2019), so a "
            "probe can solve it only by memorising words. Selectivity is the accuracy of a probe minus its accuracy on "
            "control tasks. High accuracy with low selectivity means that the probe could have memorised the words. "
            "Tasks with few different words always have low selectivity: compare encoders, layers and states, not "
            f"tasks. Here, selectivity is above 0 for {above} of {count_of(len(selectivities), 'space')}."
        )
    if any("compression" in cells for cells in spaces):
        sentences.append(
            "Description length is the number of bits needed to send the labels of train, given the vectors (Voita & "
            "Titov 2020). Compression is the number of bits without the vectors, divided by this number: the higher "
            "it is, the easier the labels are to predict from the vectors. Below 1, probes predict labels worse than "
            "guessing, as happens with few examples."
        )
    if results.has("description_length") and len(selectivities) < len(spaces):
        sentences.append("Examples that are whole sentences have no word, so they have no control task.")
    return " ".join(sentences)
