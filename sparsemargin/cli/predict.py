"""``sparsemargin predict``: a label for every row of svmlight files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import Any

import click

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.cli.display import watched
from sparsemargin.cli.files import (
    STANDARD_OUTPUT,
    check_apart,
    is_on_terminal,
    named_sources,
    opened_output,
    text_sources,
)
from sparsemargin.cli.options import (
    FILES,
    MODEL,
    N_JOBS,
    PATH,
    THRESHOLD,
    TOP_K,
    ZERO_BASED_UNLESS_KNOWN,
    make_command,
)
from sparsemargin.io.model_files import load_learner
from sparsemargin.io.predict import PredictedBlock, Predictor
from sparsemargin.io.reading import threads_for
from sparsemargin.models import Learner
from sparsemargin.models.labels import label_text

_EXAMPLES = """
sparsemargin predict news.model test.svm -o labels.txt
zcat new.svm.gz | sparsemargin predict news.model - | sort | uniq -c
sparsemargin predict news.model test.svm --scores -o scores.tsv
sparsemargin predict topics.model test.svm --top-k 3
"""


@make_command("predict", _EXAMPLES)
@MODEL
@FILES
@click.option("-o", "--output", default=STANDARD_OUTPUT, metavar="FILE", type=PATH,
              help="Instead of standard output.")  # fmt: skip
@click.option("--scores", is_flag=True,
              help="Print decision values beside the labels, separated by tabs, below a line with "
              "the classes they speak for.")  # fmt: skip
@THRESHOLD
@TOP_K
@ZERO_BASED_UNLESS_KNOWN
@N_JOBS
def command(
    model: str, files: tuple[str, ...], output: str, scores: bool, n_jobs: int | None, **how: Any
) -> None:
    """Print a label for every row of svmlight files, one a line.

    A model of many labels tells all those of the row, separated by commas; none is an empty line.
    Labels that the rows have don't matter, and may be missing. Features that the model has not
    learned count for nothing.
    """  # fmt: skip
    sources = text_sources(files)
    check_apart([("-o", output)], [("MODEL", model), *named_sources(sources, "FILE")])
    learner = load_learner(model)
    predictor = Predictor(learner, sources, n_threads=threads_for(n_jobs), **how)
    texts = _texts(learner, scores)
    lines = _scores_of(texts) if scores else _labels_of(texts)
    corpus, seen = predictor.corpus, not is_on_terminal(output)
    n_rows = 0
    with opened_output(output) as file:
        if scores:
            file.write(_header(learner, texts))
        blocks = watched(predictor.blocks(), corpus, seen=seen, block_of=attrgetter("block"))
        for predicted in blocks:
            file.write(lines(predicted))
            n_rows += predicted.block.n_rows
    if not n_rows:
        warnings.warn(f"{corpus.names} has no rows: there are no predictions.", stacklevel=1)


def _texts(learner: Learner, scores: bool) -> list[bytes]:
    """The classes as training files wrote them, whatever their encoding; refused if a reader of
    the predictions could not make out one of them."""
    many = learner._has_many_labels
    marks = "\n\r" + "\t" * scores + "," * many
    texts = []
    for text in map(label_text, learner.classes_.tolist()):
        clear = set(marks).isdisjoint(text) and (text != "" or not many)
        try:
            texts.append(text.encode("utf-8", "surrogateescape"))
            clear = clear and texts[-1].decode("utf-8", "surrogateescape") == text
        except UnicodeEncodeError:
            clear = False
        if not clear:
            raise ValueError(
                f"The model's class {text!r} can't be told in lines of text. Learn it by another "
                "name, or predict in Python, by load_model."
            )
    return texts


def _told(texts: list[bytes]) -> Callable[[PredictedBlock], Iterator[bytes]]:
    """What is predicted for each row, as text."""

    def labels(predicted: PredictedBlock) -> Iterator[bytes]:
        codes = predicted.codes
        if not isinstance(codes, Positives):
            yield from [texts[code] for code in codes.tolist()]
            return
        chosen = [texts[label] for label in codes.labels.tolist()]
        for start, end in pairwise(codes.starts.tolist()):
            yield b",".join(chosen[start:end])

    return labels


def _labels_of(texts: list[bytes]) -> Callable[[PredictedBlock], bytes]:
    told = _told(texts)
    return lambda predicted: b"".join([text + b"\n" for text in told(predicted)])


def _scores_of(texts: list[bytes]) -> Callable[[PredictedBlock], bytes]:
    told = _told(texts)

    def lines(predicted: PredictedBlock) -> Iterator[bytes]:
        outputs = predicted.outputs.tolist()
        for text, row in zip(told(predicted), outputs, strict=True):
            yield b"\t".join([text, *(repr(value).encode() for value in row)]) + b"\n"

    return lambda predicted: b"".join(lines(predicted))


def _header(learner: Learner, texts: list[bytes]) -> bytes:
    # Of two classes the second has a score, whose sign decides.
    return b"\t".join([b"label", *texts[-learner._n_labels() :]]) + b"\n"
