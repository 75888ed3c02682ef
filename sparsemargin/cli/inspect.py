"""``sparsemargin inspect``: print the settings and strongest features of a model file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import isfinite
from typing import Any

import click
import numpy as np

from sparsemargin.cli.display import listed, print_facts, print_table, size_in_words
from sparsemargin.cli.files import check_apart, feature_names
from sparsemargin.cli.options import JSON, MODEL, dictionary_option, make_command
from sparsemargin.evaluation.vectors import strongest_features
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.saving.model_files import load_with_names, summarise

# Number of features whose weights are in memory at once.
_FEATURES_PER_PART = 1 << 15

_EXAMPLES = """
sparsemargin inspect news.model
sparsemargin inspect news.model --top 50 --dictionary words.txt
"""


@make_command("inspect", _EXAMPLES)
@MODEL
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
              help="Number of the strongest features for and against each class.")  # fmt: skip
@dictionary_option("General")
@JSON
def command(model: str, top: int, dictionary: str | None, as_json: bool) -> None:
    """Print the settings of a model and its strongest features.

    For a model with a certificate, its margin and an upper bound of all margins are printed, too.
    The names of features come from a dictionary, from training (including those of a vectorizer),
    or are their indices in the files. With two classes, positive weights support the second class.
    """  # fmt: skip
    check_apart([])
    learner, known = load_with_names(model)
    names = feature_names(learner, dictionary, known)
    figures = {
        "model": model,
        "bytes": os.path.getsize(model),
        **_summary(learner),
        **_certificate(learner),
        "strongest": _strongest(learner, names, top) if _has_weights(learner) else None,
    }
    if as_json:
        click.echo(json.dumps(figures, default=str))
    else:
        _show(figures)


def _has_weights(learner: Learner) -> bool:
    """Return whether the model has one weight vector per class rather than votes or a kernel."""
    return learner.hypothesis not in ("vote", "random") and not learner.space.has_support


def _summary(learner: Learner) -> dict[str, Any]:
    summary = summarise(learner)
    has_weights = _has_weights(learner)
    return {
        **summary,
        "classes": [label_text(label) for label in summary["classes"]],
        "n_nonzero": sum(len(at) for at, _ in _nonzero(learner)) if has_weights else None,
        "intercepts": learner.intercept_.tolist() if has_weights else None,
    }


def _nonzero(learner: Learner) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the features with nonzero weight and their weights, for each weight vector."""
    n_features, found = learner.n_features_in_, []
    for start in range(0, n_features, _FEATURES_PER_PART):
        features = np.arange(start, min(start + _FEATURES_PER_PART, n_features))
        weights = learner.fitted.weights_of(features)
        label, at = np.nonzero(weights)
        found.append((label, at + start, weights[label, at]))
    label, at, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label, minlength=learner.space.n_vectors))[:-1]
    yield from zip(np.split(at[order], ends), np.split(weights[order], ends), strict=True)


def _certificate(learner: Learner) -> dict[str, Any]:
    """Return the margin and its upper bound, with None for unknown values."""
    certificate = {}
    for name in ("margin", "margin_upper_bound"):
        value = np.asarray(getattr(learner, f"{name}_", np.nan), dtype=np.float64)
        certificate[name] = [x if isfinite(x) else None for x in value.ravel().tolist()]
    return {name: values for name, values in certificate.items() if any(values)}


def _strongest(learner: Learner, names: Sequence[str], top: int) -> list[dict[str, Any]]:
    """Return the features with the largest weights for and against each class.

    With two classes, only the features of the second class are returned.
    """
    labels = [label_text(label) for label in learner.classes_.tolist()][-learner.space.n_vectors :]
    strongest = []
    for label, (at, weights) in zip(labels, _nonzero(learner), strict=True):
        sides = {}
        for side, sign in ("for", 1), ("against", -1):
            largest = strongest_features(np.maximum(sign * weights, 0), top)
            sides[side] = [
                {"feature": names[at[i]], "weight": float(weights[i])} for i in largest.tolist()
            ]
        strongest.append({"label": label, **sides})
    return strongest


def _show(figures: dict[str, Any]) -> None:
    print_facts(_facts(figures))
    click.echo("\nSettings")
    settings = figures["settings"]
    print_facts({f"  {name}": str(value) for name, value in settings.items()})
    if figures["strongest"] is None:
        click.echo(
            "\nThis model has no weights to show, because it uses a kernel, votes, or a random "
            "hypothesis."
        )
        return
    for entry in figures["strongest"]:
        click.echo()
        _show_strongest(entry)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    facts = {
        "model": f"{figures['model']}, {size_in_words(figures['bytes'])}",
        "classifier": figures["class"],
        "multilabel classes" if figures["many_labels"] else "classes": listed(figures["classes"]),
        "features": f"{figures['n_features']:,}",
        "epochs": "-" if figures["n_iter"] is None else f"{figures['n_iter']:g} in the last run",
        "trials": f"{figures['n_trials']:,}",
        "corrections": listed([f"{count:,}" for count in np.ravel(figures["n_corrections"])]),
    }
    if "n_support" in figures:
        facts["support rows"] = f"{figures['n_support']:,}"
    if figures["strongest"] is not None:
        facts["nonzero weights"] = f"{figures['n_nonzero']:,}"
        facts["intercept"] = listed([f"{value:.6g}" for value in figures["intercepts"]])
    for key, name in ("margin", "margin"), ("margin_upper_bound", "upper bound of margins"):
        if key in figures:
            facts[name] = listed([f"{value:.6g}" for value in figures[key] if value is not None])
    return facts


def _show_strongest(entry: dict[str, Any]) -> None:
    columns = [
        [of(each) for each in entry[side]]
        for side in ("for", "against")
        for of in (lambda each: each["feature"], lambda each: f"{each['weight']:+.4g}")
    ]
    header = f"for {entry['label']}", "weight", f"against {entry['label']}", "weight"
    print_table(header, list(zip_longest(*columns, fillvalue="")), left=(0, 2))
