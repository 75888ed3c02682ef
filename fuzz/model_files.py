"""Loads model files that are damaged or hostile, and uses what loads: see fuzz/README.md.

A file is refused by a ValueError or an OSError that names it, or it is a model, which may predict
nonsense but must not crash. Nothing in it is run, and no other file is touched.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from archives import MEMBER_CHANGES, archive_of, members_of, other_size
from audit import Watch
from broken_bytes import cut, flipped, moved
from contents import spoil_document, spoiled_array, use
from harness import Given, main
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from problems.hostile import opened, rewritten
from problems.models import HYPOTHESES, JOINT, MODELS, fit, make_problem, widened
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    Rejector,
    SecondOrderPerceptron,
    load_model,
    save_model,
    text,
)
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin.kernels import RBF
from sparsemargin.saving.model_files import read_summary

DUALS = {
    "Higher-order, rbf": partial(HigherOrderPerceptron, kernel=RBF(0.5)),
    "Second-order, dual": partial(SecondOrderPerceptron, solver="dual"),
}
BYTE_CHANGES = [flipped, cut, moved, other_size, other_size]

OTHERS = {
    "many labels": ALMAClassifier,
    "in blocks": ALMAClassifier,
    "text": partial(ALMAClassifier, class_weight={"a": 2.0, "b": 0.5, "c": 1.0}),
    "numbers": partial(ALMAClassifier, class_weight={0: 2.0, 1: 0.5, 2: 1}),
}

PIPELINES: dict[str, Any] = {
    "Tfidf": lambda: text.TfidfVectorizer(ngram_range=(1, 2), stop_words=["the"]),
    "counts": lambda: text.CountVectorizer(vocabulary=["money", "now", "see"]),
    "families": lambda: text.WordCharVectorizer(char_ngram_range=(3, 3)),
    "hashed families": lambda: text.WordCharHashingVectorizer(64),
    "hashed": lambda: text.HashingVectorizer(n_features=64),
    "scikit-learn": lambda: make_union(TfidfVectorizer(), CountVectorizer(analyzer="char")),
}
# Pipelines of tables, whose columns are a text, a category and a number, and of numbers.
TABLES: dict[str, Any] = {
    "table": lambda: ColumnTransformer([
        ("text", text.TfidfVectorizer(), 0),
        ("category", make_pipeline(OrdinalEncoder(), OneHotEncoder(min_frequency=3)), [1]),
        ("number", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [2]),
    ]),
    "selected": lambda: make_pipeline(SelectKBest(k=9), TruncatedSVD(3, random_state=0)),
}  # fmt: skip
# Estimators around a classifier or a pipeline.
WRAPPERS: dict[str, Any] = {
    "Rejector": partial(Rejector, max_error=0.5),
    "Rejector of texts": lambda model: Rejector(
        make_pipeline(text.HashingVectorizer(n_features=64), model), max_error=1.0, unknown=-7
    ),
}
TEXTS = ["free money now", "see you now", "money, money", "you see the plan"] * 5


def _all_kinds() -> list[tuple[str, str, int]]:
    """Name, hypothesis and number of classes of every model."""
    lone = {**MODELS, **DUALS}
    kinds = [
        (name, h, n_classes)
        for name in lone
        for h in HYPOTHESES
        for n_classes in (2, 3)
        if h in ("last", "average") or not name.startswith(("Higher", "Second"))
    ]
    kinds += [(name, h, 3) for name in JOINT for h in ("last", "average")]
    kinds += [(name, h, 3) for name in ("many labels", "text", "numbers") for h in HYPOTHESES]
    kinds += [(name, "average", 2) for name in (*PIPELINES, *TABLES, *WRAPPERS)]
    return kinds + [("in blocks", h, 20) for h in ("last", "average")]


KINDS = _all_kinds()


def problem_of(kind: tuple[str, str, int]) -> tuple[Any, Any]:
    """What a model of that kind learns from."""
    name, _, n_classes = kind
    if name in PIPELINES or name == "Rejector of texts":
        return TEXTS * 2, [0, 1] * len(TEXTS)
    X, y = make_problem(40, n_classes=n_classes)
    if name == "table":
        numbers = [np.nan, 1.5, -2.0, 0.0]
        rows = [[each, "abcde"[i % 5], numbers[i % 4]] for i, each in enumerate(TEXTS * 2)]
        return np.array(rows, object), y
    if name == "many labels":
        return X, [(label, 0) if label else () for label in y]
    if name == "text":
        return X, np.array(["a", "b", "c"], object)[y]
    return (widened(X) if "rbf" in name else X), y


class HostileModelFiles:
    """Files of every kind of model, changed in any way."""

    MOST_CHANGES = 5

    def __init__(self, folder: Path):
        vector_blocks.DENSE_BYTES = 0  # so that twenty vectors are trained in blocks
        self.path = folder / "a.model"
        self.saved: dict[tuple, tuple] = {}
        os.chdir(folder)  # where a member that escapes would show
        self.watch = Watch(str(self.path))
        for name in {name: None for name, _, _ in KINDS}:
            self._write(next(kind for kind in KINDS if kind[0] == name))
            load_model(self.path)  # and what that imports is imported

    def check(self, given: Given) -> None:
        random = given.random
        kind = KINDS[random.randint(len(KINDS))]
        change = [_change_contents, _change_contents, _change_members, _change_bytes]
        self._write(kind)
        made = change[random.randint(4)]
        given.log.append(f"{kind}: {made.__name__}")
        made(self.path, given)
        given.outcomes[self._load(kind)] += 1
        assert os.listdir() == [self.path.name], os.listdir()

    def _write(self, kind: tuple) -> None:
        """Have a sound file at the path."""
        if kind not in self.saved:
            name, hypothesis, _ = kind
            model = {**MODELS, **JOINT, **DUALS, **OTHERS}.get(name, ALMAClassifier)(
                hypothesis=hypothesis, random_state=np.random.RandomState(0), warm_start=True
            )
            if name in PIPELINES or name in TABLES:
                model = make_pipeline({**PIPELINES, **TABLES}[name](), model)
            elif name in WRAPPERS:
                model = WRAPPERS[name](model)
            save_model(fit(model, *problem_of(kind)), self.path)
            self.saved[kind] = opened(self.path)
        rewritten(self.path, *self.saved[kind])

    def _load(self, kind: tuple) -> str:
        """Load the file and use it; how that ended."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with self.watch:
                    model = load_model(self.path)
                    read_summary(self.path)
            except ValueError as error:
                assert str(error).startswith(str(self.path)), error
                return "refused"
            except MemoryError as error:
                assert str(self.path) in "".join(error.__notes__), error
                return "too large"
            finally:
                assert not self.watch.done, self.watch.done
            use(model, *problem_of(kind))
        return "used"


def _change_contents(path: Path, given: Given) -> None:
    """Numbers, types and shapes of what is written."""
    document, arrays = opened(path)
    # Of one change more is left to load.
    n_changes = given.random.randint(1, HostileModelFiles.MOST_CHANGES + 1, size=3).min()
    for random in given.changes(n_changes):
        if random.randint(2):
            spoil_document(random, document)
        else:
            name = list(arrays)[random.randint(len(arrays))]
            arrays[name] = spoiled_array(random, arrays[name])
            given.log.append(f"{name}: {arrays[name].dtype} {arrays[name].shape}")
    rewritten(path, document, arrays)


def _change_members(path: Path, given: Given) -> None:
    members = members_of(path.read_bytes())
    for random in given.changes(given.random.randint(1, 3)):
        change = MEMBER_CHANGES[random.randint(len(MEMBER_CHANGES))]
        given.log.append(change.__name__)
        if members:
            change(random, members)
    compressed = given.random.uniform() < 0.1
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    path.write_bytes(archive_of(members, compression))


def _change_bytes(path: Path, given: Given) -> None:
    contents = path.read_bytes()
    for random in given.changes(given.random.randint(1, HostileModelFiles.MOST_CHANGES + 1)):
        change = BYTE_CHANGES[random.randint(len(BYTE_CHANGES))]
        given.log.append(change.__name__)
        contents = change(random, contents)
    path.write_bytes(contents)


if __name__ == "__main__":
    main(HostileModelFiles)
