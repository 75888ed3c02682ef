"""What asv follows over the commits: `make asv`.

Each benchmark draws its rows itself and uses nothing but the package, so that it runs on commits
older than itself. Methods are named as asv wants them: `time_` is timed, `track_` returns its
figure, `peakmem_` is the peak of a process.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

import sparsemargin
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, PNormPerceptron
from sparsemargin.datasets import make_zipf_text

ONE_EPOCH = {"max_iter": 1, "fit_intercept": False, "random_state": 0}
RAW = ONE_EPOCH | {"normalize": False}
POLY = {"kernel": "poly", "degree": 4, "gamma": 1.0, "coef0": 1.0}
OPEN = {"max_updates": None, "alpha": None}
LAST, AVERAGE = ({"hypothesis": name} for name in ("last", "average"))
#: Estimators, and the rows, features and classes of the text that they learn in one epoch.
FITS = {
    "two classes, last": (PNormPerceptron, RAW | LAST, 23_149, 47_236, 2),
    "two classes, average": (PNormPerceptron, RAW | AVERAGE, 23_149, 47_236, 2),
    "103 classes, last": (PNormPerceptron, RAW | LAST, 23_149, 47_236, 103),
    "103 classes, average": (PNormPerceptron, RAW | AVERAGE, 23_149, 47_236, 103),
    "HO p=2": (HigherOrderPerceptron, ONE_EPOCH | OPEN, 5000, 47_236, 2),
    "HO p=7": (HigherOrderPerceptron, ONE_EPOCH | OPEN | {"p": 7}, 5000, 47_236, 2),
    "kernel, ten classes": (ALMAClassifier, ONE_EPOCH | POLY, 3000, 2000, 10),
}


class Epoch:
    """One epoch in memory, float32, and predictions."""

    most_rows = 10**9
    params, param_names = [list(FITS)], ["fit"]

    def setup(self, fit):
        make, params, n, n_features, n_classes = FITS[fit]
        n = min(n, self.most_rows)
        settings = {"n_classes": n_classes, "dtype": np.float32, "random_state": 0}
        X, y = make_zipf_text(n + n // 5, n_features, **settings)
        self.X, self.y, self.X_test, self.y_test = X[:n], y[:n], X[n:], y[n:]
        self.model = make(**params)
        self.fitted = make(**params).fit(self.X, self.y)

    def time_fit(self, fit):
        self.model.fit(self.X, self.y)

    def time_predict(self, fit):
        self.fitted.predict(self.X_test)

    def peakmem_fit(self, fit):
        self.model.fit(self.X, self.y)

    def track_test_error(self, fit):
        return 100 * (1 - self.fitted.score(self.X_test, self.y_test))

    track_test_error.unit = "%"

    def track_corrections(self, fit):
        return int(np.sum(self.fitted.n_corrections_))


class OneRow:
    """A row a call, classes known."""

    params, param_names = [[47_236, 1_355_191]], ["n_features"]

    def setup(self, n_features):
        X, y = make_zipf_text(200, n_features, random_state=0)
        self.row, self.label = X[-1:], y[-1:]
        self.model = PNormPerceptron(**RAW, **AVERAGE).fit(X, y)

    def time_partial_fit(self, n_features):
        self.model.partial_fit(self.row, self.label)

    def time_decision_function(self, n_features):
        self.model.decision_function(self.row)


class Svmlight:
    """From svmlight text of the RCV1 shape to a matrix, and to a model; the page cache is warm."""

    most_rows = 10_000

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "rows.svm")
        dump_svmlight_file(*make_zipf_text(self.most_rows, random_state=0), str(self.path))

    def teardown(self):
        self.folder.cleanup()

    def time_load(self):
        sparsemargin.load_svmlight(self.path, n_jobs=1)

    def time_fit(self):
        sparsemargin.fit_svmlight(self.path, "perceptron", fit_intercept=False)
