"""What each notebook in examples/ claims, asked of its variables; and what its cells printed."""

import os
import re

import numpy as np

# Of the error of always giving the same answer; single learners may come near it in a few splits.
CLEARLY_BELOW_CHANCE = 0.8


def is_generated(origin):
    """Tell whether data stand in for published files, as they shall where those are not at hand."""
    generated = origin.startswith(("GENERATED", "SMALL"))
    assert generated == (not os.environ.get("SPARSEMARGIN_DATA"))
    return generated


def mean_errors(results, chances):
    """Mean test errors by problem and learner, of each problem clearly below its chance."""
    errors = {
        problem: {learner: np.mean(run.test_errors) for learner, run in runs.items()}
        for problem, runs in results.items()
    }
    for problem, chance in chances.items():
        assert 0 < np.mean(list(errors[problem].values())) < CLEARLY_BELOW_CHANCE * chance
    return errors


def getting_started(n):
    own, peer = (m.score(n.X_test, n.libraries[n.test]) for m in (n.model, n.peer))
    assert own > n.guess + 0.1
    assert abs(own - peer) < 0.05
    assert 0.4 < n.tagged < 1
    assert n.errors[-1] < n.errors[0]
    assert (n.again.predict(n.X_test) == n.model.predict(n.X_test)).all()


def _as_they_come(errors, n_problems, chances):
    """Ours first, then scikit-learn's; ours better than the mean of these, or it would not lead."""
    ours, *theirs = [name for name in errors if not name.endswith(", tuned")]
    assert ours == "fit_csr(X, y)"
    assert len(theirs) == 3
    assert all(len(each) == n_problems for each in errors.values())
    assert np.mean(errors[ours]) < np.mean([errors[name] for name in theirs])
    assert np.mean(errors[ours]) < CLEARLY_BELOW_CHANCE * np.mean(chances)


def rcv1(n):
    is_generated(n.stories.origin)
    shares = [np.mean(labels > 0) for labels in n.stories.labels.values()]
    _as_they_come(n.as_they_come, 4, shares)
    assert sum(name.endswith(", tuned") for name in n.as_they_come) == 4
    chances = {name: np.mean(labels > 0) for name, labels in n.stories.labels.items()}
    errors = mean_errors(n.results, chances).values()
    for learner in ("HO_2(0.4)", "SO(1)"):
        gains = [each[f"{learner}, last"] - each[f"{learner}, average"] for each in errors]
        assert np.mean(gains) > 0
    assert all(test_errors[-1] < test_errors[0] for _, _, test_errors in n.streams.values())
    for [run] in n.curves.curves.values():
        # Every epoch has fewer than the first.
        assert (np.diff(run.mistakes, prepend=0)[1:] < run.mistakes[0]).all()
    updates = {name: variant.n_updates_ for name, variant in n.variants.items()}
    assert updates["HO_2(0.4)"] > updates["max_updates=500"] == 500
    assert updates["HO_2(0.4)"] > updates["sparse_updates=True"]
    high, low = (n.terms[f"HO_{p}(0.4), average"].effective_numbers.mean() for p in (7, 2))
    assert high < low
    chance = np.mean(n.is_scipy_test == "scipy")
    assert all(error < CLEARLY_BELOW_CHANCE * chance for error, _ in n.words.values())


def microarrays(n):
    chances = {name: min(np.mean(a.y > 0), np.mean(a.y < 0)) for name, a in n.arrays.items()}
    _as_they_come(n.as_they_come, 4, [*chances.values()])
    mean_errors(n.results, chances)
    generated = is_generated(n.arrays[n.STUDY].origin)
    assert all(0 < np.mean(run.test_errors) < 0.25 for run in n.rules.values())
    assert all(error < chances[name] for name, error in n.fair.items())
    for problem in {problem for problem, _ in n.genes}:
        numbers = [g.effective_numbers.mean() for (of, _), g in n.genes.items() if of == problem]
        # A larger p rests on fewer genes.
        assert (np.diff(numbers) < 0).all()
    strongest = n.study.genes[np.argsort(-n.genes[n.STUDY, 7].frequencies)[:3]]
    assert not generated or all(gene.startswith("relevant") for gene in strongest)


def mnist(n):
    errors = {name: error for name, (_, _, error, _) in n.measured.items()}
    assert all(0 < error < 0.25 for error in errors.values())
    assert errors["ALMA, three passes"] < errors["ALMA, one pass"]
    mean = {name: np.mean(line.get_ydata()) for name, line in n.errors.lines_.items()}
    assert max(mean["average"], mean["vote"], mean["last"]) < mean["random"]
    assert is_generated(n.digits.origin) or max(mean["average"], mean["vote"]) < mean["last"]
    # The largest pool holds all that a fit without a bound keeps.
    assert n.pool_errors[-1] == errors["ALMA, one pass"] < n.pool_errors[0]
    assert (n.read[n.worst] != n.digits.y_test[n.worst]).all()


def max_margin(n):
    is_generated(n.origin)
    assert (np.diff(n.certificate.upper_bounds) <= 0).all()
    best = n.rivals["MaxMargin, tol = 0.01"]
    assert best.margin_ >= 0.99 * best.margin_upper_bound_
    title = n.certificate.ax_.get_title()
    assert re.match(r"\d" if n.reached > 0 else "no margin yet", title), title
    assert all(m.margin_ <= best.margin_upper_bound_ * (1 + 1e-9) for m in n.rivals.values())
    for alpha in (0.9, 0.5):
        assert n.rivals[f"ALMA, alpha = {alpha}"].margin_ >= (1 - alpha) * best.margin_
    models = n.by_norm.values()
    assert all(m.margin_ >= 0.9 * m.margin_upper_bound_ for m in models)
    assert (np.diff([m.score(*n.sparse[2:]) for m in models]) > 0).all()


def svmlight_files(n):
    assert n.once > 0.8
    assert abs(n.several - n.once) < 0.03
    assert n.same
    assert n.hashed[-1] > n.hashed[0] + 0.1
    assert n.message.startswith("broken.svm, line 2, column 9")
    # The shell's model is that of the call, and refuses as the call does.
    return {
        "errors-shell": [n.message, "exit code 1"],
        "evaluate": [f"{100 * n.once:.2f} %"],
        "train": ["one-step-ahead error"],
        "pipe": ['"accuracy"'],
    }


def choosing_p_and_alpha(n):
    is_generated(n.stories.origin)
    # Along each line alpha falls.
    assert all((np.diff([corrections for corrections, _ in line]) > 0).all()
               for line in n.trades.values())  # fmt: skip
    sparse, dense = n.crossings.values()
    assert sparse[-1] < sparse[0] / 2
    assert dense[0] < dense[-1] / 2
    few, many, few_wrong, many_wrong, text = n.errors.values()
    assert all(errors[:, 2:].min() < errors[:, 0].min() / 2 for errors in (few, few_wrong))
    assert few_wrong.argmin() // 4 == 2
    assert all(errors.argmin() % 4 <= 1 for errors in (many, many_wrong, text))
    sparse, dense = (search.best_params_["p"] for search in n.searches.values())
    assert dense <= 3 < 6 <= sparse


def cells(n):
    assert n.accuracy > 0.7
    assert n.sure > n.accuracy
    assert n.markers["names"].shape == (8,)
    assert (n.types.predicted == n.model.predict(n.others[:, n.model.feature_names_in_].X)).all()
