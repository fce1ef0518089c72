"""Tables about the verdicts: the five findings, what earlier rules said, and the test that accuracy is not harmed."""

from __future__ import annotations

from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.earlier_rules import earlier_verdicts
from closerlook.study.findings import accuracy_test, judge_results
from closerlook.study.noise import HARM
from closerlook.study.readings import Results
from closerlook.study.rules import VERSION, rules_hash
from closerlook.study.runs import by_pair

RULES_USED = f"Rules: version {VERSION}, hash {rules_hash()}."
"""Which rules judge, for notes and the page."""


def findings_table(results: Results) -> Table:
    """The five findings with their verdicts; empty without fine-tuning."""
    columns = (
        *(Column("", digits=0), *text_columns("finding", "verdict")),
        *(Column("supported by"), Column("contradicted by"), Column("within noise"), Column("no answer")),
        *(*text_columns("median change"), Column("p", digits=4, p_value=True), *text_columns("explanation")),
    )
    findings = judge_results(results) if results.all_runs else []
    rows = [
        (
            *(finding.number, finding.title, finding.verdict),
            *(finding.n_for, finding.n_against, finding.n_within_noise, finding.n_no_answer),
            *("" if finding.effect is None else str(finding.effect), finding.p_value, finding.sentence),
        )
        for finding in findings
    ]
    note = (
        f"Counts are pairs of encoder and task. p: of a one-sided sign test over pairs, if there are enough pairs. "
        f"{RULES_USED}"
    )
    return Table("findings", "The five findings", note, columns, tuple(rows))


def earlier_text(results: Results) -> str:
    """Which rules judged the findings, and why earlier ones are shown; empty without fine-tuning."""
    if not results.all_runs:
        return ""
    return (
        f"The verdicts on this page follow version {VERSION} of the rules (hash of their text: {rules_hash()}). "
        "Earlier versions counted every fine-tuning run by itself, and any change counted, however small, so even an "
        "encoder that was hardly changed could confirm a finding. The table shows what they say about this study."
    )


def earlier_table(results: Results) -> Table:
    """The verdict on each finding by the present rules and by earlier ones."""
    if not results.all_runs:
        return Table("earlier-rules", "", "", (), ())
    rows: list[tuple[Value, ...]] = []
    earlier = earlier_verdicts(results)
    for finding in judge_results(results):
        counts = (finding.n_for, finding.n_against, finding.n_within_noise, finding.n_no_answer)
        rows.append(
            (str(finding.number), str(VERSION), finding.verdict, "pairs", *counts, f"see finding {finding.number}")
        )
        rows += [
            (
                *(str(one.number), str(one.version), one.verdict, "runs"),
                *(one.n_for, one.n_against, None, one.n_no_answer, one.rule),
            )
            for one in earlier
            if one.number == finding.number
        ]
    columns = (
        *text_columns("finding", "version", "verdict", "counted"),
        *(Column("supported by"), Column("contradicted by"), Column("within noise"), Column("no answer")),
        *text_columns("a pair or run supports the finding if"),
    )
    note = (
        "Version 0 differs from version 1 in finding 2 only. That rule was changed after the results of the study in "
        "docs/results had been seen, so its first form is shown as well."
    )
    return Table("earlier-rules", "Verdicts by this and earlier versions of the rules", note, columns, tuple(rows))


def harm_table(results: Results) -> Table:
    """For each pair: whether a fall of accuracy can be excluded, and how likely the test is to show that."""
    rows: list[tuple[Value, ...]] = []
    for pair, runs in by_pair(results.runs(own=True)).items():
        test = accuracy_test(results, pair, runs)
        if test is not None:
            result = "harm" if test.is_harm else "no harm" if test.is_shown else "not decided"
            rows.append((pair.encoder, pair.task, 100 * test.change, 100 * test.error, result, 100 * test.power))
    columns = (
        *(*text_columns("encoder", "task"), Column("change", "accuracy, points", signed=True)),
        *(Column("standard error", "accuracy, points"), *text_columns("result"), Column("power, %", digits=0)),
    )
    note = (
        f"No harm: at a level of 5%, accuracy falls by less than {100 * HARM:.0f} percentage points (equivalence test, "
        "one-sided). Harm: accuracy falls by more than 1.96 standard errors. The standard error combines the test "
        "examples, the probes, and the seeds of fine-tuning. Power: the probability that the test shows no harm if "
        "accuracy does not change; with few test examples it is low."
    )
    return Table("harm", "Is accuracy harmed?", note, columns, tuple(rows))
