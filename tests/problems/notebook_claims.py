"""What the notebooks in examples/ claim, asked of their variables in their kernel at the end.

Each function is named after its notebook. What it returns is compared with what the cells printed.
"""

import os

import numpy as np
from numpy.testing import assert_allclose

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
    panels = [axes.get_title().split()[-1] for axes in n.words.ax_]
    assert panels == ["numpy", "scipy", "sklearn"]
    assert [line.get_label() for line in n.margins.lines_] == ["sparsemargin", "LinearSVC"]
    assert all(len(tags) == 3 for tags in n.tagger.predict_labels(n.rows, top_k=3))
    assert 0.4 < n.tagged < 1
    assert n.errors[-1] < n.errors[0]
    assert (n.again.predict(n.X_test) == n.model.predict(n.X_test)).all()


def rcv1(n):
    is_generated(n.stories.origin)
    chances = {name: np.mean(labels > 0) for name, labels in n.stories.labels.items()}
    errors = mean_errors(n.results, chances).values()
    for learner in ("HO_2(0.4)", "SO(1)"):
        last, average = (
            np.mean([by_learner[f"{learner}, {hypothesis}"] for by_learner in errors])
            for hypothesis in ("last", "average")
        )
        assert average < last
    assert [axes.get_xlabel() for axes in n.display.ax_] == ["rows seen", "rows seen"]
    for log in n.streams.values():
        rows, mistakes, test_errors = map(np.asarray, log)
        assert rows[-1] == n.rcv1.N_TRAIN
        assert (np.diff(mistakes) >= 0).all()
        assert test_errors[-1] < test_errors[0]
    for [run] in n.curves.curves.values():
        # Every epoch has fewer than the first.
        assert (np.diff(run.mistakes, prepend=0)[1:] < run.mistakes[0]).all()
    whole, bounded, sparse = (
        n.variants[name] for name in ("HO_2(0.4)", "max_updates=500", "sparse_updates=True")
    )
    assert whole.n_corrections_ == whole.n_updates_ > 500
    assert bounded.n_updates_ == 500
    assert 0 < sparse.n_updates_ < sparse.n_corrections_
    assert all(0 <= terms.agreement <= 1 for terms in n.terms.values())
    high, low = (n.terms[f"HO_{p}(0.4), average"].effective_numbers.mean() for p in (7, 2))
    assert high < low
    for error, agreement in n.words.values():
        assert error < CLEARLY_BELOW_CHANCE * np.mean(n.is_scipy_test == "scipy")
        assert 0 < agreement < 1


def microarrays(n):
    chances = {name: min(np.mean(a.y > 0), np.mean(a.y < 0)) for name, a in n.arrays.items()}
    errors = mean_errors(n.results, chances)
    generated = is_generated(n.arrays[n.STUDY].origin)
    assert len(n.rules) == (0 if generated else 6)
    assert all(0 < np.mean(run.test_errors) < 0.25 for run in n.rules.values())
    for (problem, p), (difference, p_value, _) in n.tests.items():
        expected = errors[problem][f"HO_{p}(0.4)"] - errors[problem][f"HO_{p}(0)"]
        assert_allclose(difference, expected, atol=1e-12)
        assert 0 < p_value <= 1
    for name, choice in n.choices.items():
        for run in (choice.best, choice.cross_validated):
            assert run.test_errors.mean() < chances[name]
    for runs in n.curves.values():
        assert all((np.diff(run.mistakes) >= 0).all() for run in runs)
    for problem in {problem for problem, _ in n.genes}:
        group = [genes for (of, _), genes in n.genes.items() if of == problem]
        # A larger p rests on fewer genes.
        assert (np.diff([genes.effective_numbers.mean() for genes in group]) < 0).all()
        assert all(0 < genes.agreement < 1 for genes in group)
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
    assert n.pools[-1] == n.measured["ALMA, one pass"][3]
    assert n.pool_errors[-1] == errors["ALMA, one pass"] < n.pool_errors[0]
    assert (n.read[n.worst] != n.digits.y_test[n.worst]).all()


def max_margin(n):
    is_generated(n.origin)
    assert (n.certificate.margins <= n.certificate.upper_bounds).all()
    assert (np.diff(n.certificate.upper_bounds) <= 0).all()
    best = n.rivals["MaxMargin, tol = 0.01"]
    assert best.margin_ >= 0.99 * best.margin_upper_bound_
    assert all(m.margin_ <= best.margin_upper_bound_ * (1 + 1e-9) for m in n.rivals.values())
    for alpha in (0.9, 0.5):
        assert n.rivals[f"ALMA, alpha = {alpha}"].margin_ >= (1 - alpha) * best.margin_
    for name, curve in n.margins.distributions.items():
        assert_allclose(curve.thresholds[0], n.rivals[name].margin_, rtol=1e-6)
    assert (n.soft[0].predict(n.X) == n.y).all()
    models = n.by_norm.values()
    assert all(m.margin_ >= 0.9 * m.margin_upper_bound_ for m in models)
    assert (np.diff([m.score(*n.sparse[2:]) for m in models]) > 0).all()
    weights = [np.sort(np.abs(m.coef_[0])) for m in models]
    assert (np.diff([weight[-3:].sum() / weight.sum() for weight in weights]) > 0).all()


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
    kind = "generated text" if is_generated(n.stories.origin) else "news stories"
    assert n.kind == kind
    for trade in n.trades.values():
        corrections = np.reshape([point.mistakes.mean() for point in trade.points], (3, 3))
        # Along each line alpha falls.
        assert (np.diff(corrections) > 0).all()
    sparse, dense = n.crossings.values()
    assert sparse[-1] < sparse[0] / 2
    assert dense[0] < dense[-1] / 2
    weights = [abs(bar.get_width()) for bar in n.strongest.bars_[0]]
    assert weights[2] > 2 * weights[3]
    few, many, few_wrong, many_wrong, text = n.errors.values()
    for errors in (few, few_wrong):
        assert errors[:, 2:].min() < errors[:, 0].min() / 2
    assert few_wrong.argmin() // 4 == 2
    for errors in (many, many_wrong, text):
        assert errors.argmin() % 4 <= 1
    sparse, dense = (search.best_params_["p"] for search in n.searches.values())
    assert sparse >= 6
    assert dense <= 3
