"""Plots show the computed numbers, and are legible on light and on dark backgrounds."""

import importlib
import runpy
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import sparsemargin.evaluation as measured
import sparsemargin.plotting as drawn
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    Rejector,
)
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation.vectors import strongest_features
from sparsemargin.plotting.style import PALETTES

GALLERY = Path(__file__).parents[2] / "examples" / "plots"
THEMES = ("light", "dark")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_alma_target(200, 150, noise=0.05, random_state=0)[:4]


@pytest.fixture(scope="module")
def many_classes():
    X = np.random.RandomState(0).standard_normal((160, 9))
    return PNormPerceptron(random_state=0).fit(X, np.arange(160) % 40)


@pytest.fixture(scope="module")
def three_classes():
    random = np.random.RandomState(0)
    return random.standard_normal((90, 12)), np.repeat(["a", "b", "c"], 30)


def _legend(display):
    """The texts of the legend, inside the axes or next to them."""
    within = [axes.get_legend() for axes in np.ravel(display.ax_)]
    (legend,) = [each for each in (*within, *display.figure_.legends) if each is not None]
    return _texts(legend.get_texts())


def _texts(artists):
    return [artist.get_text() for artist in artists]


@pytest.mark.parametrize("normalize", [True, False])
def test_margins_are_drawn_as_distributed(data, normalize):
    X, y, *test = data
    models = {name: ALMAClassifier(alpha=name).fit(X, y) for name in (0.9, 0.5)}
    draw = drawn.MarginDistributionDisplay.from_estimator
    display = draw(models, *test, normalize=normalize)
    assert _legend(display) == ["0.9", "0.5"]
    for line, fitted in zip(display.lines_, models.values(), strict=True):
        found = measured.margins(fitted, *test, normalize=normalize)
        assert_array_equal(line.get_data(), measured.margin_distribution(found))
        assert line.get_drawstyle() == "steps-post"


def test_certificates_are_drawn_as_history(three_classes):
    X, y, *_ = make_alma_target(150, 1, random_state=0)
    estimator = MaxMarginClassifier(tol=1e-9, random_state=0)
    draw = drawn.CertificateDisplay.from_estimator
    display = draw(estimator, X, y, n_passes=8)
    (margin_line,), (bound_line,) = display.margin_lines_, display.bound_lines_
    for n, margin, bound in zip(*margin_line.get_data(), bound_line.get_ydata(), strict=True):
        fitted = estimator.set_params(hypothesis="last", max_iter=n).fit(X, y)
        assert (margin, bound) == (fitted.margin_, fitted.margin_upper_bound_)
    assert display.band_ is not None
    # Margins far below 0 do not compress the rest, unless there is nothing else.
    display = drawn.CertificateDisplay([1, 2, 3], [-90.0, 0.5, 0.9], [1.2, 1.1, 1.0]).plot()
    assert display.ax_.get_ylim()[0] == pytest.approx(-0.3)
    assert drawn.CertificateDisplay([1], [-90.0], [1.2]).plot().ax_.get_ylim()[0] < -90
    display = draw(estimator, *three_classes, n_passes=3, classes=np.array(["c", "a"]))
    assert _legend(display) == ["c", "a"]
    assert_array_equal(display.margin_lines_[0].get_ydata(), display.margins[:, 2])


def test_coverage_is_drawn_as_predicted(three_classes):
    X = three_classes[0]
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    rejector = Rejector(AROWClassifier(random_state=0), max_error=0.1).fit(X, y)
    theirs = LinearSVC(random_state=0).fit(X, y)
    trees = DecisionTreeClassifier(max_depth=2).fit(X, y)
    two = AROWClassifier(random_state=0).fit(X, y == "a")
    draw = drawn.CoverageDisplay.from_estimator
    display = draw({"ours": rejector, "theirs": theirs, "trees": trees}, X, y)
    assert _legend(display) == ["ours", "theirs", "trees"]
    for line, model in zip(display.lines_, (rejector.estimator_, theirs, trees), strict=True):
        coverage, error = line.get_data()
        assert (np.diff(coverage) > 0).all()
        assert coverage[0] >= 10 / 90
        assert coverage[-1] == 1
        assert error[-1] == pytest.approx(1 - model.score(X, y))
    answered = rejector.predict(X) != "unknown"
    (point,) = display.points_
    wrong = (rejector.predict(X) != y)[answered].mean()
    assert point.get_data() == ([answered.mean()], [wrong])
    at = np.argmin(np.abs(display.curves["ours"].coverage - answered.mean()))
    assert display.curves["ours"].error[at] == pytest.approx(wrong)
    coverage, error = draw(two, X, y == "a").lines_[0].get_data()
    most = np.abs(two.decision_function(X)) >= np.sort(np.abs(two.decision_function(X)))[-20]
    assert error[coverage == 20 / 90] == (two.predict(X) != (y == "a"))[most].mean()
    rejector.threshold_ = np.inf
    assert draw(rejector, X, y).points_ == []


def test_features_are_drawn_as_weighted(data, three_classes):
    fitted = ALMAClassifier(random_state=0).fit(*three_classes)
    draw = drawn.StrongestFeaturesDisplay.from_estimator
    names = np.array([f"gene {j}" for j in range(12)])
    vectorizer = SimpleNamespace(get_feature_names_out=lambda: names)
    display = draw(fitted, feature_names=vectorizer, top=4)
    each = zip(display.ax_, display.bars_, "abc", fitted.coef_, strict=True)
    for axes, bars, label, weights in each:
        expected = strongest_features(weights, 4)
        assert_array_equal([bar.get_width() for bar in bars], weights[expected])
        assert _texts(axes.get_yticklabels()) == names[expected].tolist()
        assert axes.get_title() == f"class {label}"
    # With two classes, the features of the second are drawn.
    fitted = PNormPerceptron(p=6, random_state=0).fit(*data[:2])
    strongest = strongest_features(fitted.coef_[0], 3)
    for chosen in None, np.array([1]):
        display = draw(fitted, top=3, classes=chosen)
        assert display.ax_.get_title() == "class 1"
        assert _texts(display.ax_.get_yticklabels()) == [f"feature {j}" for j in strongest]


def test_features_of_largest_weight_are_drawn_for_many_classes(many_classes):
    draw = drawn.StrongestFeaturesDisplay.from_estimator
    display = draw(many_classes)
    assert max(display.figure_.get_size_inches()) < 15
    heaviest = np.argsort(-np.abs(many_classes.coef_).max(axis=1))[:12]
    titles = [axes.get_title() for axes in display.ax_]
    assert titles == [f"class {k}" for k in sorted(heaviest)]
    assert display.figure_.get_suptitle() == "12 of 40 classes"
    # All requested classes are drawn, and as many as there are axes.
    assert len(draw(many_classes, top=1, classes=range(13)).bars_) == 13
    axes = plt.figure().subplots(5, 8)
    assert len(draw(many_classes, top=1, ax=axes).bars_) == 40


@pytest.mark.parametrize(("display", "more", "drawn_by"), [
    (drawn.CertificateDisplay, {"n_passes": 3}, lambda of: [of.margins, of.upper_bounds]),
    (drawn.MarginDistributionDisplay, {}, lambda of: of.distributions["model"]),
])  # fmt: skip
def test_pipeline_is_drawn_like_its_last_step(data, display, more, drawn_by):
    model = MarginPerceptron(hypothesis="last", max_iter=3, random_state=0)
    pipeline = make_pipeline(MaxAbsScaler(), model)
    X, y, *_ = data
    models = pipeline.fit(X, y)[-1], pipeline
    if display is drawn.MarginDistributionDisplay:
        models = [{"model": model} for model in models]
    alone = display.from_estimator(models[0], pipeline[0].transform(X), y, **more)
    piped = display.from_estimator(models[1], X, y, **more)
    for expected, found in zip(drawn_by(alone), drawn_by(piped), strict=True):
        assert_array_equal(found, expected)


def test_pipeline_features_are_named():
    texts, labels = ["free money", "see you", "money, money", "you see"] * 9, [1, 0, 1, 0] * 9
    pipeline = make_pipeline(TfidfVectorizer(), ALMAClassifier(random_state=0)).fit(texts, labels)
    display = drawn.StrongestFeaturesDisplay.from_estimator(pipeline, top=1)
    words, strongest = pipeline[0].get_feature_names_out(), abs(pipeline[-1].coef_[0]).argmax()
    assert _texts(display.ax_.get_yticklabels()) == [words[strongest]]


def _lines(n_lines, prefix="line"):
    shares = {f"{prefix} {i}": ([1, 2, 4], [0.1, 0.2 + i / 99, 1]) for i in range(n_lines)}
    return drawn.MarginDistributionDisplay(shares).plot()


def test_plots_use_the_given_axes_or_a_new_figure(data):
    figure, axes = plt.subplots()
    display = _lines(1).plot(axes)
    assert (display.ax_, display.figure_) == (axes, figure)
    again = _lines(1, "further").plot(axes)
    assert again.lines_[0].get_color() != display.lines_[0].get_color()
    before = plt.get_fignums()
    again.plot(c="C3", lw=3)
    assert plt.get_fignums() == [*before, again.figure_.number]
    assert again.lines_[0].get_color() == "C3"
    assert again.lines_[0].get_linewidth() == 3
    # The axes belong to a subfigure, and have no background.
    axes = figure.subfigures(1, 2)[0].subplots()
    axes.set_facecolor("none")
    assert _lines(1).plot(axes).figure_ is figure
    # Panels are passed as an array.
    axes = plt.subplots(1, 2)[1]
    display = drawn.StrongestFeaturesDisplay({c: (["x"], [1.0]) for c in "ab"}).plot(axes)
    assert_array_equal(display.ax_, axes)
    for given, told in (axes[0], "holds 1 axes, but .* 2 panels"), ("here", "array .* got str"):
        with pytest.raises(ValueError, match=f"^ax .*{told}"):
            display.plot(ax=given)


def test_long_legends_are_outside_and_line_styles_differ():
    display = _lines(12, "an algorithm of a rather long name")
    assert display.ax_.get_legend() is None
    display.figure_.draw_without_rendering()
    beside = display.figure_.legends[0].get_window_extent()
    on = display.ax_.get_window_extent()
    assert beside.x0 > on.x1
    assert beside.y0 > 0
    assert on.height > 0.8 * display.figure_.bbox.height
    display.plot(plt.subplots()[1])
    assert len(_legend(display)) == 12
    display = _lines(32)
    looks = [(line.get_marker(), line.get_color()) for line in display.lines_]
    dashes = [line.get_linestyle() for line in display.lines_]
    assert len({mark for mark, _ in looks[:8]}) == len({colour for _, colour in looks[:8]}) == 8
    assert len({*zip(looks, dashes, strict=True)}) == 32


# Perception of red, green and blue: Machado, Oliveira & Fernandes (2009), Table 1, severity 1.
VISIONS = {
    "trichromacy": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protanopia": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216,
                   -0.003882, -0.048116, 1.051998],
    "deuteranopia": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413,
                     -0.011820, 0.042940, 0.968881],
    "tritanopia": [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602,
                   0.004733, 0.691367, 0.303900],
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST_DISTANCE, LEAST_DISTANCE_OF_FOUR = 13, 20  # in CIELAB, where 2.3 is just noticeable
LEAST_CONTRAST, LEAST_TEXT_CONTRAST = 3, 4.5  # from WCAG 2


def _linear(colour):
    """Linear red, green and blue of a colour, each from 0 to 1."""
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(light):
    """Coordinates of a colour in CIELAB."""
    x, y, z = np.cbrt(XYZ @ light / XYZ.sum(axis=1))
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", THEMES)
def test_colours_are_distinguishable_with_any_vision(name, vision):
    eye = np.reshape(VISIONS[vision], (3, 3))
    seen = [_lab(np.clip(eye @ _linear(colour), 1e-3, 1)) for colour in PALETTES[name]]
    assert pdist(seen).min() >= LEAST_DISTANCE
    assert pdist(seen[:4]).min() >= LEAST_DISTANCE_OF_FOUR


def _contrast(artists, ground):
    """The smallest contrast of any of the artists to the background, as defined by WCAG 2."""
    lights = [[XYZ[1] @ _linear(c) for c in (each.get_color(), ground)] for each in artists]
    low, high = np.sort(lights).T
    return ((high + 0.05) / (low + 0.05)).min()


@pytest.mark.parametrize("name", [*THEMES, "default", "dark_background", "ggplot"])
def test_everything_has_contrast_to_the_background(name):
    before = dict(matplotlib.rcParams)
    with drawn.theme(name) if name in THEMES else plt.style.context(name):
        assert name != "dark" or plt.rcParams["axes.facecolor"] != before["axes.facecolor"]
        display = _lines(8)
        axes, ground = display.ax_, display.ax_.get_facecolor()
        texts = [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.get_xticklabels()]
    assert dict(matplotlib.rcParams) == before
    # A background of medium brightness permits less contrast.
    assert _contrast(display.lines_, ground) >= (2.3 if name == "ggplot" else LEAST_CONTRAST)
    if name in THEMES:
        texts += display.figure_.legends[0].get_texts()
        assert to_rgb(ground) == to_rgb(display.figure_.get_facecolor())
        assert _contrast(texts, ground) >= LEAST_TEXT_CONTRAST


def test_long_names_are_shortened_and_dollar_signs_escaped():
    name = "a name that goes on and on, far beyond the place there is for it"
    display = drawn.StrongestFeaturesDisplay({"a": ([name], [1.0])}).plot()
    assert _texts(display.ax_.get_yticklabels()) == [name[:29] + "…"]
    weights = {"$x^2$": (["US$ 5$", r"$\frac0$"], [1.0, -0.5])}
    display = drawn.StrongestFeaturesDisplay(weights).plot()
    display.figure_.draw_without_rendering()
    texts = [display.ax_.title, *display.ax_.get_yticklabels()]
    assert not any(text.get_parse_math() for text in texts)


ROWS = np.eye(2), [0, 1]
LAST = PNormPerceptron(hypothesis="last").fit(*ROWS)
features = partial(drawn.StrongestFeaturesDisplay.from_estimator, LAST)
certificate = drawn.CertificateDisplay([1], [0.1], [0.2])


@pytest.mark.parametrize(("call", "message"), [
    (partial(drawn.MarginDistributionDisplay, {}), "distributions must be a dict with entries"),
    (partial(drawn.MarginDistributionDisplay, {"a": ([1, 2], [0.5])}), "share of shape"),
    (partial(features, classes=()), "classes is empty"),
    (partial(drawn.CertificateDisplay.from_estimator, LinearSVC(), *ROWS), "no certificate"),
    (partial(drawn.CoverageDisplay, {}), "curves must be a dict with entries"),
    (partial(drawn.CoverageDisplay, {"a": ([0.5, 1], [0.1])}), "one error for each coverage"),
    (partial(drawn.CoverageDisplay.from_estimator, LAST, *ROWS[:1], [[0, 1]] * 2), "1d array"),
    (partial(drawn.CoverageDisplay.from_estimator, LAST, ROWS[0], ["a", "b"]), "Convert the label"),
    (partial(drawn.CoverageDisplay.from_estimator, LAST, ROWS[0], [None, 1]), r"y\[0\]"),
    (partial(drawn.CoverageDisplay.from_estimator, Rejector(LAST), *ROWS), "not fitted. Call fit"),
    (partial(drawn.CertificateDisplay, [], [], []), "passes is empty"),
    (partial(drawn.CertificateDisplay, [1, 2], [0.1], [0.2]), "do not go with passes of shape"),
    (partial(certificate.plot, classes=["a"]), "one vector serves all classes"),
    (partial(drawn.StrongestFeaturesDisplay, {"a": (["x"], [1.0, 2.0])}), "1 names, but"),
    (partial(features, feature_names=["x"]), "1 names, but there are 2"),
    (partial(features, classes=[7]), r"classes: 7 is unknown. Choose among \[1"),
    (partial(features, top=0), "top must be 1 or more"),
    (drawn.theme("mauve").__enter__, r"'mauve' is unknown\. Choose 'light' or 'dark'"),
])  # fmt: skip
def test_invalid_input_raises_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert plt.get_fignums() == []


def test_missing_matplotlib_raises_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'sparsemargin\[plot\]'"):
        importlib.reload(drawn)


# -- gallery

SCRIPTS = sorted(path.stem for path in GALLERY.glob("plot_*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_of_the_gallery_draw_a_picture(script):
    runpy.run_path(str(GALLERY / f"{script}.py"))
    assert len(plt.get_fignums()) == 1


def test_names_with_an_underscore_are_in_the_legend():
    # matplotlib leaves such labels out, among them the classes of fastText.
    classes = ["__label__no", "__label__yes"]
    display = drawn.CertificateDisplay([1, 2], [[0, 1]] * 2, [[2, 2]] * 2, classes=classes).plot()
    assert [text.strip() for text in _legend(display)] == classes
    assert len({line.get_color() for line in display.margin_lines_}) == 2
    curves = {"_ours": ([0.5, 1.0], [0.0, 0.1]), "": ([0.5, 1.0], [0.1, 0.1])}
    for kind in drawn.CoverageDisplay, drawn.MarginDistributionDisplay:
        display = kind(curves).plot()
        assert [text.strip() for text in _legend(display)] == ["_ours", ""]
        assert len({line.get_color() for line in display.lines_}) == 2


def test_classes_with_dollar_signs_are_no_formulas():
    of = {"margins": [[0, 1]] * 2, "upper_bounds": [[2, 2]] * 2, "classes": ["$0-$10", r"$\ten$"]}
    display = drawn.CertificateDisplay([1, 2], **of).plot()
    assert not any(text.get_parse_math() for text in display.ax_.get_legend().get_texts())
    display.figure_.draw_without_rendering()
