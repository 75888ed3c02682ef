"""``sparsemargin predict``: predict the labels of all rows or texts in files."""

from __future__ import annotations

import warnings
from functools import partial
from operator import attrgetter
from typing import Any

import click
import numpy as np

from sparsemargin.cli.display import watched
from sparsemargin.cli.files import (
    ReadingOptions,
    check_apart,
    feature_names,
    is_on_terminal,
    opened_model,
    opened_output,
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
from sparsemargin.cli.printed import Lines, Numbers, Printed
from sparsemargin.evaluation.explainer import Explainer
from sparsemargin.files.kinds import check_table_name
from sparsemargin.files.sources import open_sources
from sparsemargin.files.tsv import escaped, separator_for
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import probabilities_of
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import names_out_of
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

# Line ends are written as escapes, so that each prediction stays one line.
_LINE_ENDS = str.maketrans({"\n": "\\n", "\r": "\\r"})

_UNKNOWN = b"unknown"


@make_command("predict", _EXAMPLES, _BRIEF)
@OUTPUT_FILE
@option(OUTPUT, "--json", "as_json", is_flag=True,
        help="Print a JSON object for each row: label (a list for several labels, null for a "
        "rejected row), and the scores, probabilities or contributions.")  # fmt: skip
@option(OUTPUT, "--keep", metavar="COLUMN", multiple=True,
        help="Print this column of a table before the prediction, below a header. It may be "
        "repeated. The name gets the prefix kept_ if predictions have a column of this name. With "
        "--missing empty, lines of .jsonl may lack the column.")  # fmt: skip
@option(OUTPUT, "--scores", is_flag=True,
        help="Also print the decision values, below a header. Columns are separated by tabs, or by "
        "commas in a .csv.")  # fmt: skip
@option(OUTPUT, "--proba", is_flag=True,
        help="Also print the probability of each class.")  # fmt: skip
@option(OUTPUT, "--reject", "max_error", type=click.FloatRange(0, 1), is_flag=False,
        flag_value=0.05, metavar="[SHARE]",
        help="Print unknown for rows of low confidence, so that about this share of the other rows "
        "is wrong, as estimated by progressive validation. Without a value: 0.05.")  # fmt: skip
@option(OUTPUT, "--explain", "n_explained", type=click.IntRange(min=1), is_flag=False,
        flag_value=10, metavar="[K]",
        help="Print the K features with the largest contributions to the output of each label, in "
        "lines of row, label, feature and contribution. Also print the output, the "
        "intercept and the sum of the other contributions. Without a value: 10.")  # fmt: skip
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
    """Predict a label for each row or text in files.

    There is one line for each row, in order. For multilabel models, it contains all labels of the
    row, separated by commas, or nothing. With --top-k K, other models print the K most likely
    labels in the same way. Labels in the files are ignored and may be missing. An empty line of a
    file of texts is an empty text. Features unknown to the model have no effect. A saved Rejector
    rejects rows as in Python, unless --reject, --explain, --threshold or --top-k is given.
    """
    if scores + proba + bool(n_explained) > 1:
        raise click.UsageError(
            "--scores, --proba and --explain can't be combined. Pass one of them."
        )
    if n_explained and max_error is not None:
        raise click.UsageError("--explain and --reject can't be combined. Pass one of them.")
    if dictionary is not None and not n_explained:
        raise click.UsageError(
            "--dictionary names the features that --explain prints. Pass --explain, too."
        )
    check_table_name(output)
    sources = open_sources(files)
    check_apart(sources)
    options = ReadingOptions.of(reading)
    learner, opened, before, rejection = opened_model(
        model, sources, options, labelled=False, has_labels=labelled
    )
    if (max_error, n_explained, threshold, top_k) != (None,) * 4:
        rejection = None
    predictor = Predictor(
        learner, opened, max_error=max_error, threshold=threshold, top_k=top_k,
        least=None if rejection is None else rejection.threshold,
    )  # fmt: skip
    lists = learner.fitted.many or top_k is not None
    printed = Printed(options.keep, lists, separator=separator_for(output))
    classes = learner.classes_.tolist()
    names = list(map(label_text, classes))
    if scores:
        # With two classes there is one score, whose positive values stand for the second class.
        names = names[-learner.space.n_vectors :]
        printed.numbers = Numbers("scores", names, attrgetter("outputs"))
    elif proba:
        if not learner.fitted.tells_probabilities:
            raise ValueError(learner.fitted.why_no_probabilities(learner.classifier))
        printed.numbers = Numbers("probabilities", names, partial(_probabilities, learner))
    elif n_explained:
        known = None if before is None else names_out_of(before)
        features = feature_names(learner, dictionary, known)
        printed.explainer = Explainer.of_learner(learner, features)
        printed.n_explained = n_explained
        if dictionary is None and before is not None and len(before) == 1:
            printed.names_in = getattr(before[0], "names_in", None)
    if as_json:
        _write(output, predictor, b"", printed.as_json(classes))
        return
    in_table = bool(scores or proba or n_explained or options.keep)
    labels = learner.classes_
    if rejection is not None:
        labels = np.append(labels, rejection.label)
    texts = _texts([*map(label_text, labels.tolist())], in_table=in_table, lists=lists)
    if max_error is not None and _UNKNOWN in texts:
        raise ValueError(
            "The model has a class 'unknown', which is what --reject prints. Pass --json, or leave "
            "--reject out."
        )
    lines = printed.as_text([*texts, _UNKNOWN], in_table=in_table)
    _write(output, predictor, printed.header() if in_table else b"", lines)


def _probabilities(learner: Learner, predicted: PredictedBlock) -> np.ndarray:
    return probabilities_of(learner.fitted, predicted.outputs)


def _write(output: str, predictor: Predictor, header: bytes, lines: Lines) -> None:
    """Write the header and the lines of all predicted blocks to the output."""
    corpus, visible = predictor.corpus, not is_on_terminal(output)
    n_rows = 0
    with opened_output(output) as file:
        blocks = watched(predictor.blocks(), corpus, visible=visible, block_of=attrgetter("block"))
        for predicted in blocks:
            # The header comes with the first block, because reading that block may raise an error.
            file.write(header + b"".join(lines(predicted)))
            header = b""
            n_rows += predicted.block.n_rows
        file.write(header)
    if not n_rows:
        warnings.warn(f"{corpus.names} has no rows: there are no predictions.", stacklevel=1)


def _texts(labels: list[str], *, in_table: bool, lists: bool) -> list[bytes]:
    """Return the labels as bytes.

    For a table they are escaped but not yet quoted: see `quoted`. Otherwise each is a line in
    the encoding of the training files, with its line ends escaped. A ValueError names a class that
    a reader of the predictions could not recognise. With `lists`, this includes empty classes and
    classes that contain commas.
    """
    texts = dict[bytes, str]()
    for label in labels:
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
