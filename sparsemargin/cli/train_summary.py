"""What ``sparsemargin train`` tells in the end."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from sparsemargin.cli.options import is_quiet
from sparsemargin.cli.tables import lines_of_facts, percent, size_in_words, some
from sparsemargin.io.labels import label_text
from sparsemargin.io.report import bytes_read, speed
from sparsemargin.io.stream import Moment
from sparsemargin.models import Learner


def figures_of(
    learner: Learner, moment: Moment, output: str, *, interrupted: bool
) -> dict[str, Any]:
    """What there is to tell, as JSON has it; the rows are those of the last epoch."""
    mistakes = moment.mistakes
    return {
        "model": output,
        "model_bytes": os.path.getsize(output),
        "classifier": learner.classifier,
        "classes": [label_text(label) for label in learner.classes_.tolist()],
        "rows": moment.rows,
        "features": learner.n_features_in_,
        "corrections": moment.corrections,
        **_pool_figures(learner),
        "mistakes": mistakes,
        "one_step_ahead_error": None if mistakes is None else mistakes / moment.rows,
        "epochs": moment.epoch,
        "seconds": moment.seconds,
        "bytes": bytes_read(moment),
        "mb_per_second": speed(moment),
        "interrupted": interrupted,
    }


def _pool_figures(learner: Learner) -> dict[str, int]:
    """Of a model with a kernel, what it keeps and what it had no room for."""
    space = learner._space
    if not learner._has_pool:
        return {}
    return {"support_rows": space.n_support, "passed_over": int(space.passed_over.sum())}


def tell(figures: dict[str, Any], as_json: bool) -> None:
    """Print the figures: as JSON, or for people unless they want to be left alone."""
    if as_json:
        click.echo(json.dumps(figures))
    elif not is_quiet():
        click.echo(lines_of_facts(_facts(figures)), err=True)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    seconds, megabytes = figures["seconds"], figures["bytes"] / 1e6
    pool, error = {}, {}
    if figures["one_step_ahead_error"] is not None:
        error["one-step-ahead error"] = percent(figures["one_step_ahead_error"])
    if "support_rows" in figures:
        pool["support rows"] = f"{figures['support_rows']:,}"
        pool["passed over"] = f"{figures['passed_over']:,}"
    return {
        "rows": f"{figures['rows']:,}",
        "epochs": f"{figures['epochs']:,}",
        "features": f"{figures['features']:,}",
        "classes": some(figures["classes"]),
        "corrections": f"{figures['corrections']:,}",
        **pool,
        **error,
        "time": f"{seconds:.2f} s, {megabytes / max(seconds, 1e-9):.0f} MB/s",
        "model": f"{figures['model']}, {size_in_words(figures['model_bytes'])}",
    }
