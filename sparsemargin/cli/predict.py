"""``sparsemargin predict``: predict the labels of all rows or texts in files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, pairwise
from operator import attrgetter
from typing import Any

import click
import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.cli.display import watched
from sparsemargin.cli.files import (
    ReadingOptions,
    check_apart,
    feature_names,
    is_on_terminal,
    opened_model,
    opened_output,
)
from sparsemargin.cli.json_lines import (
    Explained,
    Lines,
    Numbers,
    explanations,
    json_lines,
    lines_beside,
    names_beside,
    numbers_by_class,
)
from sparsemargin.cli.options import (
    OUTPUT,
    OUTPUT_FILE,
    READING,
    THRESHOLD,
    TOP_K,
    dictionary_option,
    make_command,
    model_reading_options,
    option,
)
from sparsemargin.evaluation.explainer import Explainer, Explanation
from sparsemargin.files.sources import open_sources
from sparsemargin.files.tsv import escaped, quoted, tsv_field, tsv_row
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import probabilities_of
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import names_out_of
from sparsemargin.saving.readable import INTERCEPT
from sparsemargin.streaming.predict import PredictedBlock, Predictor

_EXAMPLES = """
sparsemargin predict reviews.model new.tsv -o labels.txt
sparsemargin predict reviews.model new.tsv --explain 5
zcat new.svm.gz | sparsemargin predict news.model - | sort | uniq -c
sparsemargin predict news.model test.svm --scores -o scores.tsv
sparsemargin predict topics.model test.svm --top-k 3 --scores
sparsemargin predict news.model test.svm --proba --reject 0.02
sparsemargin predict mails.model new.jsonl --json --proba -o predicted.jsonl
sparsemargin predict news.model test.svm --dictionary words.txt --explain 5
"""

# Options that --help lists. --help-all lists all options.
_BRIEF = {
    "output", "as_json", "keep", "scores", "proba", "max_error", "n_explained", "top_k", "format",
}  # fmt: skip

_EXPLAINED = ["row", "label", "feature", "adds"]
# Line ends are written as escapes, so that each prediction stays one line.
_LINE_ENDS = str.maketrans({"\n": "\\n", "\r": "\\r"})

_UNKNOWN = b"unknown"
_REFUSED = {
    "Rejector": "Pass --reject, with the share of errors that it allows, to print unknown for the "
    "rows that it rejects. Or predict in Python with load_model."
}
_OUTPUT, _OTHERS = "(output)", "(others)"


@make_command("predict", _EXAMPLES, _BRIEF)
@OUTPUT_FILE
@option(OUTPUT, "--json", "as_json", is_flag=True,
        help="Print a JSON object for each row: label (a list for several labels, null for a "
        "rejected row), and the scores, probabilities or contributions.")  # fmt: skip
@option(OUTPUT, "--keep", metavar="COLUMN", multiple=True,
        help="Print this column of a table before the prediction, below a header. It may be given "
        "several times. A name that predictions have, too, begins with kept_.")  # fmt: skip
@option(OUTPUT, "--scores", is_flag=True,
        help="Print the decision values, too, separated by tabs, below a header.")  # fmt: skip
@option(OUTPUT, "--proba", is_flag=True,
        help="Also print the probability of each class.")  # fmt: skip
@option(OUTPUT, "--reject", "max_error", type=click.FloatRange(0, 1), is_flag=False,
        flag_value=0.05, metavar="[SHARE]",
        help="Print unknown for rows of low confidence, so that about this share (0.05) of the "
        "other rows is wrong, as estimated by progressive validation.")  # fmt: skip
@option(OUTPUT, "--explain", "n_explained", type=click.IntRange(min=1), is_flag=False,
        flag_value=10, metavar="[K]",
        help="Print the K features (10) with the largest contributions to the output of each "
        "label: lines of row, label, feature and contribution, separated by tabs. The output, the "
        "intercept and the sum of all other contributions are printed, too.")  # fmt: skip
@dictionary_option(OUTPUT)
@THRESHOLD
@TOP_K
@option(READING, "--labelled/--unlabelled", "labelled", default=None,
        help="Whether lines of a .tsv begin with a label and a tab, or each line is a text.  "
        "[default: labelled if the first lines begin with classes of the model]")  # fmt: skip
@model_reading_options
def command(
    model: str, files: tuple[str, ...], output: str, as_json: bool, scores: bool, proba: bool,
    n_explained: int | None, dictionary: str | None, labelled: bool | None,
    max_error: float | None, threshold: Any, top_k: int | None, **reading: Any,
) -> None:  # fmt: skip
    """Print a label for each row, or text, of files.

    For multilabel models, each line contains all labels of the row, separated by commas, or
    nothing. With --top-k K, other models print the K most likely labels likewise. Labels in the
    files are ignored and may be missing. There is one line for each row, in order. An empty line
    of texts is an empty text. Features unknown to the model have no effect.
    """
    if scores + proba + bool(n_explained) > 1:
        raise click.UsageError(
            "--scores, --proba and --explain print different lines. Leave all but one out."
        )
    if n_explained and max_error is not None:
        raise click.UsageError(
            "--explain and --reject exclude each other. Leave one of the two out."
        )
    if dictionary is not None and not n_explained:
        raise click.UsageError(
            "--dictionary names the features that --explain prints. Pass --explain, too."
        )
    sources = open_sources(files)
    check_apart(sources)
    # A Rejector's predictions are those of the model in it only if the command rejects rows, or
    # prints something else than predictions.
    others = (max_error, n_explained, threshold, top_k)
    options, keep = ReadingOptions.of(reading), reading["keep"]
    learner, opened, before = opened_model(
        model, sources, options, labelled=False, has_labels=labelled,
        refused=_REFUSED if others == (None,) * len(others) else None,
    )  # fmt: skip
    predictor = Predictor(learner, opened, max_error=max_error, threshold=threshold, top_k=top_k)
    lists = learner.fitted.many or top_k is not None
    numbers: Numbers | None = attrgetter("outputs") if scores else None
    if proba:
        if not learner.fitted.tells_probabilities:
            raise ValueError(learner.fitted.why_no_probabilities(learner.classifier))
        numbers = partial(_probabilities, learner)
    explained = None
    if n_explained:
        known = None if before is None else names_out_of(before)
        names = feature_names(learner, dictionary, known)
        explained = _explanations(Explainer.of_learner(learner, names))
    if as_json:
        members = None
        if numbers is not None:
            members = numbers_by_class("scores" if scores else "probabilities", learner, numbers)
        elif explained is not None:
            members = explanations(explained, n_explained or 0, lists=lists)
        _write(output, predictor, b"", json_lines(learner, keep, members))
        return
    in_table = bool(numbers or explained or keep)
    texts = _texts(learner, in_table=in_table, lists=lists)
    if max_error is not None and _UNKNOWN in texts:
        raise ValueError(
            "The model has a class 'unknown', which is what --reject prints. Pass --json, or leave "
            "--reject out."
        )
    lines, columns = _labels_of([*texts, _UNKNOWN], numbers, in_table=in_table), ["label"]
    if numbers is not None:
        # With two classes there is one score, whose positive values stand for the second class.
        classes = list(map(label_text, learner.classes_.tolist()))
        columns += classes[-learner.space.n_vectors :] if scores else classes
    elif explained is not None:
        lines, columns = _explained_of(texts, explained, n_explained or 0), _EXPLAINED
    header = tsv_row([*names_beside(columns, keep), *columns]) if in_table else b""
    _write(output, predictor, header, lines_beside(lines) if keep else lines)


def _probabilities(learner: Learner, predicted: PredictedBlock) -> np.ndarray:
    return probabilities_of(learner.fitted, predicted.outputs)


def _write(output: str, predictor: Predictor, header: bytes, lines: Lines) -> None:
    """Write the header and the lines of all predicted blocks to the output."""
    corpus, visible = predictor.corpus, not is_on_terminal(output)
    n_rows = 0
    with opened_output(output) as file:
        file.write(header)
        blocks = watched(predictor.blocks(), corpus, visible=visible, block_of=attrgetter("block"))
        for predicted in blocks:
            file.write(b"".join(line + b"\n" for row in lines(predicted) for line in row))
            n_rows += predicted.block.n_rows
    if not n_rows:
        warnings.warn(f"{corpus.names} has no rows: there are no predictions.", stacklevel=1)


def _texts(learner: Learner, *, in_table: bool, lists: bool) -> list[bytes]:
    """Return the classes as bytes.

    For a table they are escaped but not yet quoted: see `tsv_field`. Otherwise each is a line in
    the encoding of the training files, with its line ends escaped. A ValueError names a class that
    a reader of the predictions could not recognise. With `lists`, this includes empty classes and
    classes that contain commas.
    """
    texts = dict[bytes, str]()
    for label in map(label_text, learner.classes_.tolist()):
        text = label.translate(_LINE_ENDS)
        clear = not lists or ("," not in text and text != "")
        try:
            raw = text.encode("utf-8", "surrogateescape")
            clear = clear and raw.decode("utf-8", "surrogateescape") == text
            raw = escaped(label) if in_table else raw
        except UnicodeEncodeError:
            clear = False
        if not clear or raw in texts:
            raise ValueError(
                f"The model's class {label!r} can't be printed unambiguously in lines of text. "
                "Train with another name, or predict in Python with load_model."
            )
        texts[raw] = label
    return list(texts)


def _predicted_labels(texts: list[bytes]) -> Callable[[PredictedBlock], Iterator[bytes]]:
    """Return a function that writes the predicted labels of a block, one line per row."""

    def labels(predicted: PredictedBlock) -> Iterator[bytes]:
        codes = predicted.codes
        if not isinstance(codes, Positives):
            yield from [texts[code] for code in codes.tolist()]
            return
        chosen = [texts[label] for label in codes.labels.tolist()]
        for start, end in pairwise(codes.starts.tolist()):
            yield b",".join(chosen[start:end])

    return labels


def _labels_of(texts: list[bytes], numbers: Numbers | None, *, in_table: bool) -> Lines:
    """Return a function that writes the labels of each row, and the numbers if there are any."""
    labels = _predicted_labels(texts)

    def lines(predicted: PredictedBlock) -> Iterator[list[bytes]]:
        found = labels(predicted)
        if in_table:
            found = map(quoted, found)
        if numbers is None:
            yield from ([label] for label in found)
            return
        for label, row in zip(found, numbers(predicted).tolist(), strict=True):
            yield [b"\t".join([label, *(repr(value).encode() for value in row)])]

    return lines


def _explanations(explainer: Explainer) -> Explained:
    def explained(predicted: PredictedBlock) -> Iterator[list[tuple[int, Explanation]]]:
        bounds = predicted.rows.indptr
        for i in range(predicted.block.n_rows):
            outputs, entries = predicted.outputs[i], slice(bounds[i], bounds[i + 1])
            columns, values = predicted.rows.indices[entries], predicted.rows.data[entries]
            codes = _codes_of_row(predicted.codes, i)
            yield [(code, explainer.explain(code, outputs, columns, values)) for code in codes]

    return explained


def _explained_of(texts: list[bytes], explained: Explained, n_features: int) -> Lines:
    rows = count(1)

    def lines(predicted: PredictedBlock) -> Iterator[list[bytes]]:
        for each, row in zip(explained(predicted), rows, strict=False):
            yield [
                b"\t".join([b"%d" % row, quoted(texts[code]), name, repr(value).encode()])
                for code, explanation in each
                for name, value in _parts(explanation, n_features)
            ]

    return lines


def _codes_of_row(codes: Any, row: int) -> list[int]:
    if isinstance(codes, Positives):
        return codes.labels[codes.starts[row] : codes.starts[row + 1]].tolist()
    return [int(codes[row])]


def _parts(explained: Explanation, n_features: int) -> Iterator[tuple[bytes, float]]:
    """Yield names and values: the output, the intercept and the largest contributions.

    The last pair is the sum of all other contributions, if there are any.
    """
    yield _OUTPUT.encode(), explained.output
    yield INTERCEPT.encode(), explained.intercept
    added = explained.contributions.tolist()
    for name, value in zip(explained.names[:n_features], added, strict=False):
        taken = name in (_OUTPUT, INTERCEPT, _OTHERS)
        yield b"\\" * taken + tsv_field(name), value
    if len(added) > n_features:
        yield _OTHERS.encode(), sum(added[n_features:])
