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


class Epoch:
    """The Perceptron over two classes of the RCV1 shape, float32."""

    n_rows, n_classes = 23_149, 2
    params, param_names = [["last", "average"]], ["hypothesis"]

    def setup(self, hypothesis):
        n, classes = self.n_rows, self.n_classes
        X, y = make_zipf_text(n + n // 5, n_classes=classes, dtype=np.float32, random_state=0)
        self.X, self.y, self.X_test, self.y_test = X[:n], y[:n], X[n:], y[n:]
        self.model = PNormPerceptron(
            normalize=False, max_iter=1, hypothesis=hypothesis, fit_intercept=False, random_state=0
        )

    def time_fit(self, hypothesis):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, hypothesis):
        self.model.fit(self.X, self.y)

    def track_test_error(self, hypothesis):
        return 100 * (1 - self.model.fit(self.X, self.y).score(self.X_test, self.y_test))

    track_test_error.unit = "%"


class ManyLabels(Epoch):
    """The Perceptron over 103 classes of the same shape, one sweep over a row for all."""

    n_classes = 103

    def setup(self, hypothesis):
        super().setup(hypothesis)
        self.fitted = self.model.fit(self.X, self.y)

    def time_predict(self, hypothesis):
        self.fitted.predict(self.X_test)


class OneRow:
    """A row a call, classes known."""

    params, param_names = [[47_236, 1_355_191]], ["n_features"]

    def setup(self, n_features):
        X, y = make_zipf_text(200, n_features, random_state=0)
        self.row, self.label = X[-1:], y[-1:]
        self.model = PNormPerceptron(
            normalize=False, max_iter=1, hypothesis="average", fit_intercept=False
        ).fit(X, y)

    def time_partial_fit(self, n_features):
        self.model.partial_fit(self.row, self.label)

    def time_decision_function(self, n_features):
        self.model.decision_function(self.row)


class Svmlight:
    """From svmlight text of the RCV1 shape to a matrix, and to a model; the page cache is warm."""

    n_rows = 10_000

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "rows.svm")
        dump_svmlight_file(*make_zipf_text(self.n_rows, random_state=0), str(self.path))

    def teardown(self):
        self.folder.cleanup()

    def time_load(self):
        sparsemargin.load_svmlight(self.path, n_jobs=1)

    def time_fit(self):
        sparsemargin.fit_svmlight(self.path, "perceptron", fit_intercept=False)


class HigherOrder:
    """One epoch of the Higher-order Perceptron over text."""

    n_rows = 5000
    params, param_names = [[2, 7]], ["p"]

    def setup(self, p):
        self.X, self.y = make_zipf_text(self.n_rows, random_state=0)
        self.model = HigherOrderPerceptron(
            p=p, max_iter=1, max_updates=None, fit_intercept=False, random_state=0
        )

    def time_fit(self, p):
        self.model.fit(self.X, self.y)

    def track_corrections(self, p):
        return self.model.fit(self.X, self.y).n_corrections_


class Kernel:
    """One epoch with a polynomial of degree 4 over ten classes of text."""

    n_rows = 3000

    def setup(self):
        self.X, self.y = make_zipf_text(self.n_rows, 2000, n_classes=10, random_state=0)
        kernel = {"kernel": "poly", "degree": 4, "gamma": 1.0, "coef0": 1.0}
        self.model = ALMAClassifier(**kernel, max_iter=1, fit_intercept=False, random_state=0)
        self.fitted = ALMAClassifier(**self.model.get_params()).fit(self.X, self.y)

    def time_fit(self):
        self.model.fit(self.X, self.y)

    def time_predict(self):
        self.fitted.predict(self.X)

    def track_support(self):
        return len(self.fitted.support_)
