"""The spaces beside the linear one: the matrix of the Higher-order Perceptron, and kernels."""

from sparsemargin import ALMAClassifier, HigherOrderPerceptron
from sparsemargin.datasets import make_zipf_text


class HigherOrder:
    """One epoch over text."""

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
        self.model = ALMAClassifier(
            kernel="poly",
            degree=4,
            gamma=1.0,
            coef0=1.0,
            max_iter=1,
            fit_intercept=False,
            random_state=0,
        )
        self.fitted = ALMAClassifier(**self.model.get_params()).fit(self.X, self.y)

    def time_fit(self):
        self.model.fit(self.X, self.y)

    def time_predict(self):
        self.fitted.predict(self.X)

    def track_support(self):
        return len(self.fitted.support_)
