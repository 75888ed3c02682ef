"""``sparsemargin evaluate``: evaluate a model on labelled files."""

from __future__ import annotations

import json
import sys
from operator import attrgetter
from typing import Any

import click

from sparsemargin._shown import columns_of
from sparsemargin.cli.display import listed, percent, print_facts, print_table, watched
from sparsemargin.cli.files import ReadingOptions, check_apart, opened_model
from sparsemargin.cli.options import (
    JSON,
    POSITIVE,
    THRESHOLD,
    TOP_K,
    make_command,
    model_reading_options,
)
from sparsemargin.evaluation.files import ClassEvaluation, Evaluation, LabelEvaluation
from sparsemargin.files.sources import open_sources
from sparsemargin.models import Learner
from sparsemargin.streaming.predict import OpenCorpus

_EXAMPLES = """
sparsemargin evaluate reviews.model test.tsv
sparsemargin evaluate news.model test.svm --json | python -m json.tool
sparsemargin evaluate c15.model topics-test.svm.bz2 --positive C15
sparsemargin evaluate topics.model topics-test.svm.bz2 --top-k 3
"""

_OF_PROBABILITIES = (
    ("log loss", "log_loss"), ("Brier score", "brier_score"),
    ("calibration error", "calibration_error"),
)  # fmt: skip

# Largest number of classes of a printed confusion matrix. For larger or too wide matrices, the
# `_MOST_CONFUSIONS` most frequent confusions are printed.
_WIDEST_MATRIX = 12
_CORNER = "class \\ predicted"
_MOST_CONFUSIONS = 20


# Options that --help lists. --help-all lists all options.
_BRIEF = {"positive", "threshold", "top_k", "format", "as_json"}


@make_command("evaluate", _EXAMPLES, _BRIEF)
@POSITIVE
@THRESHOLD
@TOP_K
@model_reading_options
@JSON
def command(
    model: str,
    files: tuple[str, ...],
    positive: str | None,
    threshold: Any,
    top_k: int | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Evaluate a model on labelled files.

    Prints precision, recall and F1 of each class, the confusion matrix, and quantiles of the
    margins (outputs of normalized weights on normalized rows). Rows whose label is not a class of
    the model are counted separately and do not affect the figures.

    For models with probabilities, log loss, Brier score (sum of the squared errors over the classes
    of a row) and expected calibration error (15 bins) are printed, too.

    Micro averages use the sums of the counts over all classes. Macro averages are means over all
    classes of the model. A score whose denominator is 0 counts as 0.

    For multilabel models, subset accuracy is the share of rows for which exactly the labels of the
    row are predicted. Hamming loss is the share of wrong entries in the matrix of rows and labels.
    Labels that are not classes of the model affect only subset accuracy. --top-k is for these
    models.

    For a saved Rejector, the figures are those of the classifier in it, and the number of rejected
    rows, the coverage (share of the other rows) and the error of the other rows are printed, too.
    """
    sources = open_sources(files)
    check_apart(sources)
    learner, opened, _, rejection = opened_model(model, sources, ReadingOptions.of(reading))
    how = {"threshold": threshold, "top_k": top_k}
    if rejection is not None:
        how["least"] = rejection.threshold
    evaluation = _open(learner, opened, positive, **how)
    predictor = evaluation.predictor
    evaluation.run(watched(predictor.blocks(), predictor.corpus, block_of=attrgetter("block")))
    figures = {"model": model, **evaluation.figures()}
    if as_json:
        click.echo(json.dumps(figures))
    else:
        _show(figures)


def _open(learner: Learner, opened: OpenCorpus, positive: str | None, **how: Any) -> Evaluation:
    if not learner.fitted.many:
        return ClassEvaluation(learner, opened, positive=positive, **how)
    if positive is not None:
        raise ValueError(
            f"positive={positive!r} needs a model of two classes, and this is a multilabel model. "
            "Leave it out."
        )
    return LabelEvaluation(learner, opened, **how)


def _show(figures: dict[str, Any]) -> None:
    print_facts({**_facts(figures), **_averages(figures), **_left_out(figures)})
    click.echo()
    _show_classes(figures["classes"])
    if "confusion" in figures:
        click.echo()
        _show_confusion(figures)
    if figures.get("margins") is not None:
        click.echo()
        _show_margins(figures["margins"])


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    shares = {
        "accuracy": "accuracy",
        "error": "error",
        "coverage": "coverage",
        "error of accepted rows": "accepted_error",
        "subset accuracy": "subset_accuracy",
        "Hamming loss": "hamming_loss",
    }
    return {
        "rows": f"{figures['rows']:,}",
        "mistakes": f"{figures['mistakes']:,}",
        **({} if "rejected" not in figures else {"rejected": f"{figures['rejected']:,}"}),
        **{name: percent(figures[key]) for name, key in shares.items() if key in figures},
        **{name: f"{figures[key]:.4g}" for name, key in _OF_PROBABILITIES if key in figures},
    }


def _averages(figures: dict[str, Any]) -> dict[str, str]:
    names = {"precision": "precision", "recall": "recall", "F1": "f1"}
    # If each row has one label, micro averages equal the accuracy and are not repeated.
    kinds = ("macro",) if figures.get("accuracy") == figures["micro_f1"] else ("macro", "micro")
    return {
        f"{kind} {name}": percent(figures[f"{kind}_{key}"])
        for kind in kinds
        for name, key in names.items()
    }


def _left_out(figures: dict[str, Any]) -> dict[str, str]:
    unknown = figures["unknown_labels"]
    if not unknown:
        return {}
    left_out = sum(entry["rows"] for entry in unknown)
    labels = listed([f"{entry['label']} ({entry['rows']:,})" for entry in unknown])
    return {"left out": f"{left_out:,} rows of labels that the model does not have: {labels}"}


def _show_classes(classes: list[dict[str, Any]]) -> None:
    header = ("class", "precision", "recall", "F1", "rows", "predicted")
    rows = [
        (
            entry["label"], percent(entry["precision"]), percent(entry["recall"]),
            percent(entry["f1"]), f"{entry['rows']:,}", f"{entry['predicted']:,}",
        )
        for entry in classes
        if entry["rows"] or entry["predicted"]
    ]  # fmt: skip
    print_table(header, rows)


def _show_confusion(figures: dict[str, Any]) -> None:
    counts = {(e["label"], e["predicted"]): e["rows"] for e in figures["confusion"]}
    labels = [e["label"] for e in figures["classes"] if e["rows"] or e["predicted"]]
    width = len(_CORNER) + sum(len(label) + 2 for label in labels)
    if len(labels) <= _WIDEST_MATRIX and width <= columns_of(sys.stdout):
        rows = [
            [label, *(f"{counts.get((label, other), 0):,}" for other in labels)] for label in labels
        ]
        print_table([_CORNER, *labels], rows)
        return
    confused = [(count, pair) for pair, count in counts.items() if pair[0] != pair[1]]
    confused.sort(key=lambda entry: -entry[0])
    most = [(*pair, f"{count:,}") for count, pair in confused[:_MOST_CONFUSIONS]]
    print_table(("class", "predicted", "rows"), most, "Most frequent mistakes", left=(0, 1))


def _show_margins(margins: dict[str, Any]) -> None:
    values = [("least", margins["least"])]
    values += [(f"{entry['share']:.0%}", entry["margin"]) for entry in margins["quantiles"]]
    values += [("largest", margins["largest"])]
    rows = [(name, f"{value:.4g}") for name, value in values]
    print_table(("share of rows", "margin up to"), rows)
