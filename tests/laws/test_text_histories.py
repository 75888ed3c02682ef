"""Laws for any history of a text model with hashed features, among them new classes: a state
machine draws random events, and a twin, which is only trained, must stay bitwise equal."""

import pickle
import warnings
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from depth import some
from problems.lives import LIMITS, lowered
from sparsemargin import TextClassifier, fit_text, load_model, save_model
from sparsemargin._engine.first_order import packed
from sparsemargin.text import HashingVectorizer

LETTERS = "abcdefgh"
# These limits concern weights, not kernels or logs of corrections.
NAMES = sorted(name for name in LIMITS if not name.startswith(("replays", "kernel", "room")))

batches = st.fixed_dictionaries({
    "n_classes": st.integers(2, 8), "first": st.integers(0, 6), "n_rows": st.integers(4, 40),
    "seed": st.integers(0, 10**6),
})  # fmt: skip
params = st.fixed_dictionaries({}, optional={
    "prior": st.sampled_from([None, "naive_bayes", "naive_bayes"]),
    "hypothesis": st.sampled_from(["last", "last", "average"]),
    "class_weight": st.sampled_from([None, "balanced", {"a": 2.0}]),
    "max_iter": st.sampled_from([1, 2]), "normalize": st.booleans(),
    "fit_intercept": st.sampled_from([True, True, False]),
    "algo": st.sampled_from(["arow", "arow", "alma"]),
})  # fmt: skip


def tickets(n_classes, first, n_rows, seed):
    """Random texts with words of their classes, and the classes, letters from the first one on."""
    random = np.random.RandomState(seed)
    classes = list(LETTERS[first : first + n_classes])
    y = [*classes, *random.choice(classes, n_rows)][:n_rows]
    texts = [
        " ".join(random.choice([each, "any"]) + str(random.randint(30)) for _ in range(6))
        for each in y
    ]
    return texts, y


class LifeOfTexts(RuleBasedStateMachine):
    """A text model, and its twin."""

    def __init__(self):
        super().__init__()
        self.folder, self.limits = TemporaryDirectory(), ()
        self.model = self.twin = None

    def teardown(self):
        self.folder.cleanup()

    def path(self, name):
        return Path(self.folder.name, name)

    def written(self, texts, y):
        """The path of a new file of these texts."""
        path = self.path("texts.tsv")
        path.write_text("".join(f"{label}\t{text}\n" for text, label in zip(texts, y, strict=True)))
        return path

    def learn(self, call):
        """Replace the model and the twin by the results of the call for each. If it raises errors,
        these must be equal, and the models must not change."""
        results, said = [], []
        for each in (self.model, self.twin):
            with warnings.catch_warnings(), lowered(self.limits):
                warnings.simplefilter("ignore")
                try:
                    results.append(call(each))
                    said.append(None)
                except ValueError as error:
                    said.append(str(error))
        assert said[0] == said[1]
        if said[0] is None:
            self.model, self.twin = results

    @rule(
        batch=batches, params=params, limits=st.sets(st.sampled_from(NAMES), max_size=3),
        bits=st.integers(5, 12), how=st.sampled_from(["fit", "partial_fit", "file"]),
    )  # fmt: skip
    def begin(self, batch, params, limits, bits, how):
        """Train a new model in memory, in batches, or on a file."""
        before, self.limits = self.limits, limits
        texts, y = tickets(**batch)
        path = self.written(texts, y)

        def call(_):
            params_of = {"algo": "arow", "random_state": 0, **params}
            features = HashingVectorizer(n_features=1 << bits)
            if how == "file":
                return fit_text(path, features=features, **params_of)
            own = {name: params_of.pop(name) for name in ("algo", "random_state")}
            model = TextClassifier(features=features, **own, params=params_of)
            if how == "fit":
                return model.fit(texts, y)
            return model.partial_fit(texts, y, classes=sorted(set(y)))

        known = self.twin
        self.learn(call)
        if self.twin is known:
            self.limits = before

    @precondition(lambda self: self.twin is not None)
    @rule(batch=batches, announced=st.sampled_from(["", "", LETTERS]))
    def go_on(self, batch, announced):
        """Train in memory, with classes that may be new, or announced before they occur."""
        texts, y = tickets(**batch)
        classes = sorted({*announced, *y, *self.twin.classes_.tolist()}) if announced else None
        self.learn(lambda model: model.partial_fit(texts, y, classes))

    @precondition(lambda self: self.twin is not None)
    @rule(batch=batches, in_file=st.booleans())
    def go_on_with_a_copy(self, batch, in_file):
        texts, y = tickets(**batch)
        given = (self.written(texts, y),) if in_file else (texts, y)
        self.learn(lambda model: fit_text(*given, init_model=model))

    @precondition(lambda self: self.twin is not None)
    @rule(batch=batches)
    def go_on_warm(self, batch):
        """Fit the classifier to further rows under `warm_start`."""
        texts, y = tickets(**batch)

        def call(model):
            classifier = model.classifier_
            rows = model.vectorizer_.transform(texts)
            try:
                classifier.set_params(warm_start=True).fit(rows, y)
            finally:
                classifier.set_params(warm_start=False)
            return model

        self.learn(call)

    @precondition(lambda self: self.twin is not None)
    @rule(how=st.sampled_from(["file", "pickle", "copy"]))
    def travel(self, how):
        if how == "file":
            self.model = self.restored(self.model)
        else:
            go = deepcopy if how == "copy" else lambda model: pickle.loads(pickle.dumps(model))
            self.model = go(self.model)

    def restored(self, model):
        """The model from a file, after a check that another save writes the same bytes."""
        paths = self.path("a.model"), self.path("b.model")
        with lowered(self.limits):
            save_model(model, paths[0])
            loaded = load_model(paths[0])
            save_model(loaded, paths[1])
        assert paths[0].read_bytes() == paths[1].read_bytes()
        return loaded

    @invariant()
    def is_its_twin(self):
        if self.twin is None:
            return
        texts, _ = tickets(n_classes=8, first=0, n_rows=9, seed=1)
        same = self.model, self.twin, self.restored(self.twin)
        with lowered(self.limits):
            told = [(each.decision_function(texts), self.probabilities(each, texts), each.classes_)
                    for each in same]  # fmt: skip
        for other in told[1:]:
            for one, another in zip(told[0], other, strict=True):
                assert one.tobytes() == another.tobytes()

    @staticmethod
    def probabilities(model, texts):
        return model.predict_proba(texts) if hasattr(model, "predict_proba") else np.zeros(0)


def test_text_model_depends_only_on_its_training(monkeypatch):
    """The model depends only on its training, not on files, copies, predictions or errors."""
    monkeypatch.setattr(packed, "_LEAST_BYTES", 0)
    run_state_machine_as_test(LifeOfTexts, settings=settings(
        max_examples=some(8, 600), stateful_step_count=10, deadline=None, derandomize=True,
        database=None, suppress_health_check=list(HealthCheck),
    ))  # fmt: skip
