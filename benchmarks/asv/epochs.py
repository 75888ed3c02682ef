"""One epoch in memory: two classes and a hundred, and one row a call."""

import numpy as np

from sparsemargin import PNormPerceptron
from sparsemargin.datasets import make_zipf_text

HYPOTHESES = [["last", "average"]]


class Epoch:
    """The Perceptron over two classes of the RCV1 shape, float32."""

    n_rows, n_classes = 23_149, 2
    params, param_names = HYPOTHESES, ["hypothesis"]

    def setup(self, hypothesis):
        X, y = make_zipf_text(
            self.n_rows + self.n_rows // 5, n_classes=self.n_classes, dtype=np.float32,
            random_state=0,
        )  # fmt: skip
        self.X, self.y = X[: self.n_rows], y[: self.n_rows]
        self.X_test, self.y_test = X[self.n_rows :], y[self.n_rows :]
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
