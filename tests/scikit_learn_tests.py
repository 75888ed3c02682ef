"""scikit-learn's own tests of `Perceptron`, and those of `SGDClassifier` that are about weights,
warm starts, early stopping and partial fits, with our classifiers in their place.

    PYTHONPATH=tests python tests/scikit_learn_tests.py
    PYTHONPATH=tests python tests/scikit_learn_tests.py perceptron alma -- -k warm_start

The tests are those of the scikit-learn that is installed. Failures that are expected are listed in
`EXPECTED` with their reasons, and one that does not occur is told of too.
"""

import inspect
import os
import re
import subprocess
import sys

import pytest
from sklearn import linear_model
from sklearn.base import BaseEstimator, ClassifierMixin

import sparsemargin

#: What takes the place of both, and settings that the other library has no names for: with these
#: "perceptron" is its own one. The others are as they come.
STAND_INS = {
    "perceptron": (sparsemargin.PNormPerceptron, {"normalize": False, "intercept_scaling": 1.0}),
    "pnorm": (sparsemargin.PNormPerceptron, {"p": 6.0}),
    "alma": (sparsemargin.ALMAClassifier, {}),
    "arow": (sparsemargin.AROWClassifier, {}),
    "ho": (sparsemargin.HigherOrderPerceptron, {}),
    # What `fit_csr` learns by.
    "default": (sparsemargin.ALMAClassifier, {"hypothesis": "average"}),
}

MODULES = {name: f"sklearn.linear_model.tests.test_{name}" for name in ("perceptron", "sgd")}

#: Of the tests of `SGDClassifier` those whose names have one of these.
SUBJECTS = re.compile("weight|early_stopping|test_validation|n_iter|partial_fit|multiple_fit")

#: Parameters of theirs that are ours by the same name.
SAME = {
    "fit_intercept", "max_iter", "shuffle", "verbose", "n_jobs", "random_state", "class_weight",
    "warm_start",
}  # fmt: skip

#: The same, as soon as a test asks for them.
WHERE_ASKED = {"early_stopping", "validation_fraction", "n_iter_no_change"}

EVERY = tuple(STAND_INS)

#: Failures that are expected: why, of which stand-ins, and the tests.
EXPECTED = [
    ("no loss is minimised, and so nothing is penalised", EVERY, ["test_perceptron_l1_ratio"]),
    ("is not Rosenblatt's Perceptron, whose weights are wanted",
     ("pnorm", "alma", "arow", "ho", "default"), ["test_perceptron_correctness"]),
    ("refuses the same in other words", EVERY, ["test_partial_fit_weight_class_balanced"]),
    ("looks into the other library's own code", EVERY, ["test_validation_mask_correctly_subsets"]),
    ("no rows are held out", EVERY,
     ["test_validation_set_not_used_for_training", "test_not_enough_sample_for_early_stopping",
      "test_sgd_error_on_zero_validation_weight"]),
    ("corrections of a pass are waited for, and in a hundred there is mostly one with fewer",
     EVERY, ["test_multi_thread_multi_class_and_early_stopping"]),
    ("without early_stopping a fit makes its epochs, as tol is a share of the largest margin",
     EVERY, ["test_early_stopping"]),
    ("early_stopping is of fits, and partial_fit takes no notice of it", EVERY,
     ["test_sgd_early_stopping_with_partial_fit"]),
    ("the last vector on rows that have no margin is any", ("perceptron",),
     ["test_multi_core_gridsearch_and_early_stopping"]),
    ("weights of rows and of classes are each divided by a mean of their own: of their products "
     "the ratios stay, not the scale of the steps", EVERY, ["test_weights_multiplied"]),
    ("no penalty keeps the vector moving: once the rows are right, no weight turns it further",
     EVERY, ["test_class_weights", "test_sample_weights"]),
    ("the class of the row that comes first has the longer step", ("ho",),
     ["test_equal_class_weight"]),
    ("the last vector on rows that have no margin is any", ("perceptron", "pnorm"),
     ["test_balanced_weight"]),
    ("wants more than 4 % of errors without weights, and there are fewer",
     ("alma", "ho", "default"), ["test_balanced_weight"]),
    ("rows of large weight pull too far", ("arow",), ["test_balanced_weight"]),
]  # fmt: skip


class StandIn(ClassifierMixin, BaseEstimator):
    """A classifier of ours behind the parameters of `theirs`.

    Loss, penalty and learning rate are part of our algorithms, and `tol` is another thing there:
    a test that sets these gets what it would get without. Averages are hypotheses.
    """

    def __init__(self, **given):
        unknown = given.keys() - self._get_param_names()
        if unknown:
            raise TypeError(f"unexpected {sorted(unknown)}")
        vars(self).update(self._defaults() | given)

    @classmethod
    def _defaults(cls):
        return {name: each.default for name, each in cls.parameters.items()}

    @classmethod
    def _get_param_names(cls):
        return sorted(cls.parameters)

    def _ours(self):
        """The classifier, with the parameters as they are now."""
        params, defaults = self.get_params(), self._defaults()
        settings = {name: params[name] for name in SAME & params.keys()}
        for name in WHERE_ASKED & params.keys():
            if params[name] != defaults[name]:
                # A ValueError might be what the test waits for.
                if name not in self.kind.parameter_names():
                    raise TypeError(f"{self.kind.__name__} has no {name}.")
                settings[name] = params[name]
        if "hypothesis" not in self.fixed:
            settings["hypothesis"] = "average" if params.get("average") else "last"
        if "ours" not in vars(self):
            self.ours = self.kind(**self.fixed)
        return self.ours.set_params(**settings)

    def fit(self, X, y, sample_weight=None):
        self._ours().fit(X, y, sample_weight=sample_weight)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self._ours().partial_fit(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def decision_function(self, X):
        return self.ours.decision_function(X)

    def predict(self, X):
        return self.ours.predict(X)

    def __getattr__(self, name):
        if name == "ours" or "ours" not in vars(self):
            raise AttributeError(name)
        return getattr(self.ours, name)


def stand_in(theirs, name):
    """The class that takes the place of theirs."""
    kind, fixed = STAND_INS[name]
    parameters = inspect.signature(theirs).parameters
    return type(theirs.__name__, (StandIn,), {
        "parameters": parameters, "kind": kind, "fixed": fixed,
    })  # fmt: skip


class Selection:
    """The tests that concern us, and which of them are expected to fail; a plugin of pytest."""

    def __init__(self, name):
        self.reasons = {
            test: reason for reason, names, tests in EXPECTED if name in names for test in tests
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        ours = [item for item in items if concerns_us(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in ours])
        items[:] = ours
        for item in items:
            if item.originalname in self.reasons:
                reason = self.reasons[item.originalname]
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        gone = self.reasons.keys() - {item.originalname for item in items}
        if gone:
            raise pytest.UsageError(f"EXPECTED has tests that there are none of: {sorted(gone)}")


def concerns_us(item):
    given = " ".join(map(str, getattr(getattr(item, "callspec", None), "_idlist", ())))
    if "Regressor" in given or "OneClass" in given or "oneclass" in item.name:
        return False
    return item.module.__name__ == MODULES["perceptron"] or bool(SUBJECTS.search(item.originalname))


def run(name, options):
    """The exit code of the tests of one stand-in."""
    for theirs in linear_model.Perceptron, linear_model.SGDClassifier:
        setattr(linear_model, theirs.__name__, stand_in(theirs, name))
    print(f"\n{name}: {STAND_INS[name][0].__name__}({STAND_INS[name][1]})", flush=True)
    quiet = ["-q", "-rfExX", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly"]
    modules = ["-c", os.devnull, "--rootdir", os.getcwd(), "--pyargs", *MODULES.values()]
    return pytest.main([*quiet, *options, *modules], plugins=[Selection(name)])


def main():
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    names, options = given[:cut] or list(STAND_INS), given[cut + 1 :]
    if len(names) == 1:
        sys.exit(run(names[0], options))
    # A module of tests is imported but once.
    runs = [subprocess.run([sys.executable, __file__, name, "--", *options]) for name in names]
    sys.exit(max(each.returncode for each in runs))


if __name__ == "__main__":
    main()
