"""Pictures show the numbers that were computed, legibly on light ground and on dark."""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from depth import some
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
)
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation import (
    certificate_over_passes,
    growth_exponent,
    hypothesis_errors,
    learning_curve_over_epochs,
    margin_distribution,
    margins,
    random_splits,
    selection_stability,
    strongest_features,
    trade_off_over_alpha,
)
from sparsemargin.evaluation.growth import GrowthExponent
from sparsemargin.plotting import (
    CertificateDisplay,
    EpochCurvesDisplay,
    GrowthCurve,
    GrowthDisplay,
    HypothesisErrorsDisplay,
    MarginDistributionDisplay,
    SelectionStabilityDisplay,
    StrongestFeaturesDisplay,
    TradeOffDisplay,
    theme,
)
from sparsemargin.plotting.style import PALETTES

GALLERY = Path(__file__).parents[2] / "examples" / "plots"
THEMES = ("light", "dark")
LEAST_CONTRAST = 3  # of WCAG 2, for graphics; 4.5 is that for text
LEAST_TEXT_CONTRAST = 4.5


@pytest.fixture(autouse=True)
def _closed_figures():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_alma_target(200, 150, noise=0.05, random_state=0)[:4]


@pytest.fixture(scope="module")
def three_classes():
    random = np.random.RandomState(0)
    return random.standard_normal((90, 12)), np.repeat(["a", "b", "c"], 30)


def _legend(display):
    """The texts of the picture's legend, within the axes or beside them."""
    within = [axes.get_legend() for axes in np.ravel(display.ax_)]
    (legend,) = [each for each in (*within, *display.figure_.legends) if each is not None]
    return _texts(legend.get_texts())


def _texts(artists):
    return [artist.get_text() for artist in artists]


# ---------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("normalize", [True, False])
def test_margins_are_drawn_as_distributed(data, normalize):
    X, y, X_test, y_test = data
    models = {name: ALMAClassifier(alpha=name).fit(X, y) for name in (0.9, 0.5)}
    display = MarginDistributionDisplay.from_estimator(models, X_test, y_test, normalize=normalize)
    assert _legend(display) == ["0.9", "0.5"]
    for line, fitted in zip(display.lines_, models.values(), strict=True):
        found = margins(fitted, X_test, y_test, normalize=normalize)
        assert_array_equal(line.get_data(), margin_distribution(found))
        assert line.get_drawstyle() == "steps-post"


def test_margins_of_outputs_are_those_of_the_own_class(data, three_classes):
    X, y, X_test, y_test = data
    svm = LinearSVC(fit_intercept=False, random_state=0).fit(X, y)
    outputs = svm.decision_function(X_test)
    display = MarginDistributionDisplay.from_predictions(y_test, outputs, name="SVM")
    assert _legend(display) == ["SVM"]
    assert_allclose(display.lines_[0].get_xdata(), np.sort(y_test * outputs))
    X, y = three_classes
    svm.fit(X, y)
    display = MarginDistributionDisplay.from_predictions(
        y, {"SVM": svm.decision_function(X)}, thresholds=[-1, 0, 1]
    )
    assert display.lines_[0].get_ydata()[1] == pytest.approx(1 - svm.score(X, y))


def test_epochs_are_drawn_as_measured(data):
    rivals = {"p = 2": PNormPerceptron(), "SGD": SGDClassifier(random_state=0)}
    display = EpochCurvesDisplay.from_estimator(rivals, *data, epochs=[1, 2, 4])
    assert _legend(display) == ["p = 2", "SGD"]
    expected = learning_curve_over_epochs(rivals["p = 2"], *data, epochs=[1, 2, 4])
    corrections, errors = display.correction_lines_, display.error_lines_
    assert_array_equal(corrections[0].lines[0].get_data(), [[1, 2, 4], expected.mistakes])
    assert_array_equal(errors[0].lines[0].get_data(), [[1, 2, 4], 100 * expected.test_errors])
    assert np.isnan(corrections[1].lines[0].get_ydata()).all()
    display = EpochCurvesDisplay.from_estimator(rivals["SGD"], *data, epochs=[1])
    assert _texts(display.ax_[0].texts) == ["corrections are not counted"]


def test_several_runs_are_drawn_by_mean_and_standard_error(data):
    display = EpochCurvesDisplay.from_estimator(
        PNormPerceptron(), *data, epochs=[1, 3], n_repeats=3, random_state=0
    )
    runs = display.curves["PNormPerceptron"]
    errors = 100 * np.array([run.test_errors for run in runs])
    line, _, (bars,) = display.error_lines_[0].lines
    assert_allclose(line.get_ydata(), errors.mean(axis=0))
    half = np.diff([segment[:, 1] for segment in bars.get_segments()])[:, 0] / 2
    assert_allclose(half, errors.std(axis=0, ddof=1) / np.sqrt(3))
    assert half.max() > 0


def test_hypotheses_are_drawn_as_replayed(data):
    X, y, X_test, y_test = data
    model = PNormPerceptron(p=6, hypothesis="vote", max_iter=3, random_state=0).fit(X, y)
    moments = [0.5, 1, 2, 3]
    display = HypothesisErrorsDisplay.from_estimator(model, X_test, y_test, moments=moments)
    expected = hypothesis_errors(model, X_test, y_test, moments)
    assert _legend(display) == ["random", "last", "average", "vote"]
    for name, line in display.lines_.items():
        assert_array_equal(line.get_data(), [moments, 100 * expected.errors[name]])
    whole = HypothesisErrorsDisplay.from_estimator(model, X_test, y_test)
    assert_allclose(whole.lines_["vote"].get_xdata(), np.linspace(0, 3, 41)[1:])
    model.set_params(max_corrections=3, shuffle=False).fit(X, y)
    ended = HypothesisErrorsDisplay.from_estimator(model, X, y)
    assert 0 < ended.lines_["vote"].get_xdata()[-1] < 1


def test_trade_offs_are_drawn_as_cross_validated(data):
    X, y = data[:2]
    estimator, grid = ALMAClassifier(random_state=0), {"p": [2, 6], "alpha": [0.9, 0.5]}
    display = TradeOffDisplay.from_estimator(estimator, X, y, cv=3, **grid)
    expected = trade_off_over_alpha(estimator, X, y, cv=3, **grid)
    assert _legend(display) == ["p = 2", "p = 6"]
    for p, container in display.lines_.items():
        own = [point for point in expected if point.p == p]
        means = [(point.mistakes.mean(), 100 * point.accuracies.mean()) for point in own]
        assert_array_equal(container.lines[0].get_xydata(), means)
    assert sorted(_texts(display.ax_.texts)) == ["0.5", "0.5", "0.9", "0.9"]


def test_certificates_are_drawn_as_history():
    X, y, *_ = make_alma_target(150, 1, random_state=0)
    estimator = MaxMarginClassifier(random_state=0)
    display = CertificateDisplay.from_estimator(estimator, X, y, n_passes=8)
    expected = certificate_over_passes(estimator, X, y, n_passes=8)
    (margin_line,), (bound_line,) = display.margin_lines_, display.bound_lines_
    assert_array_equal(margin_line.get_data(), [expected.passes, expected.margins])
    assert_array_equal(bound_line.get_data(), [expected.passes, expected.upper_bounds])
    assert display.band_ is not None


def test_certificates_of_chosen_classes(three_classes):
    display = CertificateDisplay.from_estimator(
        MaxMarginClassifier(soft_margin=1.0), *three_classes, n_passes=3,
        classes=np.array(["c", "a"]),
    )  # fmt: skip
    assert _legend(display) == ["c", "a"]
    assert_array_equal(display.margin_lines_[0].get_ydata(), display.margins[:, 2])
    with pytest.raises(ValueError, match=r"classes: 'd' is unknown. Choose among \['a', 'b', 'c'"):
        display.plot(classes=["d"])
    # Margins far below 0 do not flatten the rest, unless there is nothing else.
    display = CertificateDisplay([1, 2, 3], [-90.0, 0.5, 0.9], [1.2, 1.1, 1.0]).plot()
    assert display.ax_.get_ylim()[0] == pytest.approx(-0.3)
    assert CertificateDisplay([1], [-90.0], [1.2]).plot().ax_.get_ylim()[0] < -90


def test_features_are_drawn_as_weighted(three_classes):
    X, y = three_classes
    fitted = ALMAClassifier(random_state=0).fit(X, y)
    names = [f"gene {j}" for j in range(12)]
    display = StrongestFeaturesDisplay.from_estimator(fitted, feature_names=names, top=4)
    assert display.ax_.shape == (3,)
    for axes, bars, label, weights in zip(
        display.ax_, display.bars_, "abc", fitted.coef_, strict=True
    ):
        expected = strongest_features(weights, 4)
        assert_array_equal([bar.get_width() for bar in bars], weights[expected])
        assert _texts(axes.get_yticklabels()) == [names[j] for j in expected]
        assert axes.get_title() == f"class {label}"


def test_features_of_two_classes_are_those_of_the_second(data):
    fitted = PNormPerceptron(p=6, random_state=0).fit(*data[:2])
    display = StrongestFeaturesDisplay.from_estimator(fitted, top=3)
    assert display.ax_.get_title() == "class 1"
    named = StrongestFeaturesDisplay.from_estimator(fitted, top=3, classes=np.array([1]))
    assert named.weights.keys() == display.weights.keys()
    first = display.ax_.get_yticklabels()[0].get_text()
    assert first == f"feature {strongest_features(fitted.coef_[0], 1)[0]}"


def test_selections_are_drawn_as_counted(data):
    X, y = data[:2]
    splits = random_splits(200, train_size=100, test_size=100, n_splits=4, random_state=0)
    estimator = PNormPerceptron(p=6, shuffle=False)
    display = SelectionStabilityDisplay.from_estimator(estimator, X, y, splits=splits, top=5)
    found = selection_stability(estimator, X, y, splits, top=5)
    assert_array_equal(display.frequencies, found.frequencies)
    widths = [bar.get_width() for bar in display.bars_]
    assert_array_equal(widths, 100 * np.sort(found.frequencies)[::-1][:5])
    assert f"{found.agreement:.2f}" in display.ax_.get_title()


def test_growth_is_drawn_with_its_power_law():
    sizes, seconds = [1000, 2000, 4000, 8000], [0.1, 0.21, 0.4, 0.82]
    display = GrowthDisplay.from_measurements({"epoch": (sizes, seconds)}, size_name="nonzeros")
    fitted = growth_exponent(sizes, seconds)
    assert [text.replace("\u00a0", " ") for text in _legend(display)] == [f"epoch: {fitted}"]
    assert_array_equal(display.points_[0].get_xydata(), np.transpose([sizes, seconds]))
    ends = np.array([1000, 8000])
    assert_allclose(display.lines_[0].get_ydata(), fitted.factor * ends**fitted.slope)
    assert display.ax_.get_xlabel() == "nonzeros"
    assert _texts(display.ax_.get_xticklabels()) == ["1k", "2k", "4k", "8k"]
    # Where the exponent is of something else, the points are joined.
    curve = GrowthCurve([1, 2, 3], [1.0, 5.0, 6.0], GrowthExponent(0.5, 0.1))
    display = GrowthDisplay({"x": curve}).plot()
    assert_array_equal(display.lines_[0].get_xydata(), display.points_[0].get_xydata())


# ---------------------------------------------------------------------------- where it is drawn


def _growth(n_curves, prefix="curve"):
    return {f"{prefix} {i}": ([1, 2, 4], [1.0 + i, 2.0 + i, 4.0 + i]) for i in range(n_curves)}


def test_a_picture_stands_on_the_axes_it_is_given_or_opens_a_figure():
    figure, axes = plt.subplots()
    display = GrowthDisplay.from_measurements(_growth(1), ax=axes)
    assert (display.ax_, display.figure_) == (axes, figure)
    assert plt.get_fignums() == [figure.number]
    colours = {line.get_color() for line in display.points_}
    again = GrowthDisplay.from_measurements(_growth(1, "further"), ax=axes)
    assert colours.isdisjoint(line.get_color() for line in again.points_)
    again.plot(c="C3", lw=3)
    assert len(plt.get_fignums()) == 2
    assert again.points_[0].get_color() == "C3"
    assert again.lines_[0].get_linewidth() == 3


def test_axes_may_be_those_of_a_subfigure(data):
    figure = plt.figure(layout="constrained")
    axes = figure.subfigures(1, 2)[0].subplots()
    axes.set_facecolor("none")
    display = TradeOffDisplay.from_estimator(
        ALMAClassifier(random_state=0), *data[:2], p=[2], alpha=[0.9, 0.5], cv=2, ax=axes
    )
    assert display.figure_ is figure
    assert len(axes.texts) == 2


def test_panels_are_given_as_an_array(data):
    axes = plt.subplots(1, 2)[1]
    display = EpochCurvesDisplay.from_estimator(PNormPerceptron(), *data, epochs=[1], ax=axes)
    assert_array_equal(display.ax_, axes)
    with pytest.raises(ValueError, match="ax holds 1 axes, but the picture has 2 panels"):
        display.plot(ax=axes[0])
    with pytest.raises(
        ValueError, match="ax must be matplotlib axes, or an array of them, got str"
    ):
        display.plot(ax="here")


@pytest.mark.parametrize(
    ("n_curves", "name"), [(12, "an algorithm of a rather long name"), (5, "HO")]
)
def test_long_legends_stand_beside_the_axes(n_curves, name):
    display = GrowthDisplay.from_measurements(_growth(n_curves, name))
    assert display.ax_.get_legend() is None
    display.figure_.draw_without_rendering()
    beside = display.figure_.legends[0].get_window_extent()
    drawn = display.ax_.get_window_extent()
    assert beside.x0 > drawn.x1
    assert beside.y0 > 0
    assert drawn.height > 0.8 * display.figure_.bbox.height
    display.plot(plt.subplots()[1])
    assert len(_legend(display)) == n_curves


def test_lines_differ_by_more_than_colour():
    display = GrowthDisplay.from_measurements(_growth(32))
    looks = [(line.get_marker(), line.get_color()) for line in display.points_]
    dashes = [line.get_linestyle() for line in display.lines_]
    assert len({mark for mark, _ in looks[:8]}) == len({colour for _, colour in looks[:8]}) == 8
    assert len({(*look, dash) for look, dash in zip(looks, dashes, strict=True)}) == 32


# ---------------------------------------------------------------------------- legibility


# How red, green and blue light are seen: Machado, Oliveira & Fernandes (2009), Table 1, severity 1.
VISIONS = {
    "trichromacy": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST_DISTANCE, LEAST_DISTANCE_OF_FOUR = 13, 20  # in CIELAB, where 2.3 is just noticeable


def _linear(colour):
    """Light of a colour: red, green and blue, each from 0 to 1."""
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(light):
    """Place of a colour in CIELAB."""
    x, y, z = np.cbrt(XYZ @ light / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", THEMES)
def test_colours_are_told_apart_with_any_vision(name, vision):
    seen = [np.clip(VISIONS[vision] @ _linear(colour), 1e-3, 1) for colour in PALETTES[name]]
    distances = pdist(np.array([_lab(light) for light in seen]))
    assert distances.min() >= LEAST_DISTANCE
    assert pdist(np.array([_lab(light) for light in seen[:4]])).min() >= LEAST_DISTANCE_OF_FOUR


def _luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    return float(XYZ[1] @ _linear(colour))


def _contrast(one, other):
    low, high = sorted([_luminance(one), _luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_everything_has_contrast_to_the_ground(name):
    with theme(name):
        display = GrowthDisplay.from_measurements(_growth(8))
        axes, ground = display.ax_, display.ax_.get_facecolor()
        texts = [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.get_xticklabels()]
        texts += display.figure_.legends[0].get_texts()
        assert _luminance(ground) == _luminance(display.figure_.get_facecolor())
    assert all(_contrast(line.get_color(), ground) >= LEAST_CONTRAST for line in display.points_)
    assert all(_contrast(text.get_color(), ground) >= LEAST_TEXT_CONTRAST for text in texts)


@pytest.mark.parametrize(
    # Grounds that are neither light nor dark have less to give.
    ("style", "least"),
    [("default", 3), ("dark_background", 3), ("ggplot", 2.3), ("Solarize_Light2", 2.3)],
)
def test_other_styles_get_the_colours_for_their_ground(style, least):
    with plt.style.context(style):
        display = GrowthDisplay.from_measurements(_growth(8))
    ground = display.ax_.get_facecolor()
    assert min(_contrast(line.get_color(), ground) for line in display.points_) >= least


def test_a_theme_ends_with_its_block():
    before = dict(matplotlib.rcParams)
    with theme("dark"):
        assert matplotlib.rcParams["axes.facecolor"] != before["axes.facecolor"]
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(ValueError, match=r"'mauve' is unknown\. Choose 'light' or 'dark'"):
        theme("mauve").__enter__()


def test_long_names_of_features_are_cut():
    name = "a name that goes on and on, far beyond the place there is for it"
    display = SelectionStabilityDisplay([1.0], feature_names=[name]).plot()
    (shown,) = _texts(display.ax_.get_yticklabels())
    assert shown.endswith("…")
    assert name.startswith(shown[:-1])
    assert len(shown) == 30


def test_dollars_in_names_are_no_mathematics():
    display = StrongestFeaturesDisplay({"$x^2$": (["US$ 5$", r"$\frac0$"], [1.0, -0.5])}).plot()
    display.figure_.draw_without_rendering()
    texts = [display.ax_.title, *display.ax_.get_yticklabels()]
    assert not any(text.get_parse_math() for text in texts)


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: MarginDistributionDisplay({}), "distributions must be a dict with entries"),
        (lambda X, y: MarginDistributionDisplay({"a": ([1, 2], [0.5])}), "share of shape"),
        (lambda X, y: MarginDistributionDisplay.from_estimator({}, X, y),
         "estimator must be a dict with entries"),
        (lambda X, y: MarginDistributionDisplay.from_estimator(PNormPerceptron(), X, y),
         "The estimator 'PNormPerceptron' is not fitted. Call fit"),
        (lambda X, y: MarginDistributionDisplay.from_predictions(y, np.ones((200, 3))),
         r"3 outputs a row do not go with the classes \[-1, 1\]"),
        (lambda X, y: MarginDistributionDisplay.from_predictions(y, np.ones(7)), "inconsistent"),
        (lambda X, y: EpochCurvesDisplay({"a": []}), r"curves\['a'\] must be an EpochCurve"),
        (lambda X, y: EpochCurvesDisplay.from_estimator(LinearSVC(), X, y, X, y), "partial_fit"),
        (lambda X, y: EpochCurvesDisplay.from_estimator(PNormPerceptron(), X, y, X, y, n_repeats=0),
         "n_repeats must be 1 or more, got 0"),
        (lambda X, y: HypothesisErrorsDisplay.from_estimator(LinearSVC(), X, y), "LinearSVC"),
        (lambda X, y: HypothesisErrorsDisplay.from_estimator(PNormPerceptron().fit(X, y), X, y),
         "Fit with hypothesis='vote' or 'random'"),
        (lambda X, y: HypothesisErrorsDisplay.from_estimator(
            PNormPerceptron(hypothesis="vote").fit(X, y), X, y, hypotheses=()),
         "hypotheses is empty"),
        (lambda X, y: TradeOffDisplay([]), "points is empty"),
        (lambda X, y: TradeOffDisplay.from_estimator(LinearSVC(), X, y),
         "LinearSVC has no parameter p and no alpha. Pass an ALMAClassifier"),
        (lambda X, y: CertificateDisplay([], [], []), "passes is empty"),
        (lambda X, y: CertificateDisplay([1, 2], [0.1], [0.2]), "do not go with passes of shape"),
        (lambda X, y: CertificateDisplay([1], [0.1], [0.2]).plot(classes=["a"]), "one vector"),
        (lambda X, y: CertificateDisplay.from_estimator(HigherOrderPerceptron(), X, y),
         "HigherOrderPerceptron has no certificate"),
        (lambda X, y: StrongestFeaturesDisplay({"a": (["x"], [1.0, 2.0])}), "1 names, but weights"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(PNormPerceptron()), "is not fitted"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            PNormPerceptron(kernel="rbf").fit(X, y)), "PNormPerceptron has no weight vector"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            PNormPerceptron().fit(X, y), feature_names=["x"]), "1 names, but there are 300"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            PNormPerceptron().fit(X, y), classes=[7]), r"classes: 7 is unknown. Choose among \[1"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            PNormPerceptron().fit(X, y), classes=[]), "classes is empty"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            PNormPerceptron().fit(X, y), top=0), "top must be 1 or more"),
        (lambda X, y: StrongestFeaturesDisplay.from_estimator(
            SVC(kernel="linear").fit(X, np.arange(200) % 3)), "SVC has no weight vector for each"),
        (lambda X, y: SelectionStabilityDisplay([0.5, 1.5]), "shares from 0 to 1"),
        (lambda X, y: SelectionStabilityDisplay([0.5], feature_names=["a", "b"]), "2 names, but"),
        (lambda X, y: GrowthDisplay.from_measurements({"a": ([1, 2], [1])}), "vectors of one"),
        (lambda X, y: GrowthDisplay({"a": GrowthCurve([], [], growth_exponent([], []))}), "sizes"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(data, call, message):
    with pytest.raises(ValueError, match=message):
        call(*data[:2])
    assert plt.get_fignums() == []


# ---------------------------------------------------------------------------- imports, gallery


def test_matplotlib_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    display = GrowthDisplay({"a": GrowthCurve([1], [1.0], GrowthExponent(1.0, 0.1))})
    with pytest.raises(ImportError, match=r"GrowthDisplay\.plot requires matplotlib"):
        display.plot()


SCRIPTS = sorted(path.stem for path in GALLERY.glob("plot_*.py"))
TAKE_LONG = {"plot_growth", "plot_hypothesis_errors"}


@pytest.mark.parametrize("script", some(sorted({*SCRIPTS} - TAKE_LONG), SCRIPTS))
def test_scripts_of_the_gallery_draw_a_picture(script):
    runpy.run_path(str(GALLERY / f"{script}.py"))
    assert len(plt.get_fignums()) == 1
