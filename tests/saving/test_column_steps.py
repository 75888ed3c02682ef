"""Steps for columns of tables are restored bit for bit, and their state in files is checked."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from problems.command_line import run
from problems.hostile import at, contents_of, rewritten
from sparsemargin import ALMAClassifier, Rejector, load_model, save_model
from sparsemargin import text as ours
from sparsemargin.saving import column_steps

RANDOM = np.random.RandomState(0)
N = 60
Y = np.array(["hardware", "billing", "other"])[np.arange(N) % 3]
TICKETS = pd.DataFrame({
    "body": [f"{word} fails {i % 7} times" for i, word in enumerate(Y)],
    # As objects, None remains None: the text of pandas 3 has NaN instead.
    "product": pd.Series(["printer", "laptop", "phone", None], dtype=object)
               .iloc[RANDOM.randint(4, size=N)].reset_index(drop=True),
    "country": RANDOM.choice(["ch", "de", "fr", "it", "at", "li"], N,
                             p=[0.4, 0.3, 0.2, 0.06, 0.03, 0.01]),
    "priority": RANDOM.randint(1, 4, N),
    "hours": np.where(RANDOM.random_sample(N) < 0.2, np.nan, RANDOM.exponential(9.0, N)),
    "vip": RANDOM.random_sample(N) < 0.3,
    "empty": np.nan,
})  # fmt: skip
OTHERS = TICKETS.sample(frac=1.0, random_state=1).assign(country="xx")
ROWS = RANDOM.standard_normal((N, 30)) + (np.arange(30) < 3) * (np.arange(N) % 3)[:, np.newaxis]
GAPS = np.where(RANDOM.random_sample(ROWS.shape) < 0.1, np.nan, ROWS)
CATEGORIES = ["product", "country", "vip"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def piped(*steps, X=TICKETS):
    return make_pipeline(*steps, ALMAClassifier(random_state=0)).fit(X, Y)


def one_hot(**parameters):
    return OneHotEncoder(handle_unknown="ignore", **parameters)


def tickets(text="body", **parameters):
    return ColumnTransformer([
        ("text", ours.TfidfVectorizer(ngram_range=(1, 2)), text),
        ("cat", make_pipeline(SimpleImputer(missing_values=None, strategy="most_frequent"),
                              one_hot()), ["product", "country"]),
        ("num", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
         make_column_selector("hours|empty")),
        ("out", "drop", ["vip"]),
    ], **parameters)  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*Skipping features|.*unknown categories")
@pytest.mark.parametrize(("X", "steps"), [
    (TICKETS, [tickets()]),
    (TICKETS, [tickets(remainder="passthrough", sparse_threshold=0.0)]),
    (TICKETS, [tickets(remainder=StandardScaler(), transformer_weights={"text": 2.0}, n_jobs=1)]),
    (TICKETS, [make_column_transformer((one_hot(drop="first"), [1, 2]), (MaxAbsScaler(), [-4]))]),
    (TICKETS, [make_column_transformer((one_hot(min_frequency=5), CATEGORIES))]),
    (TICKETS, [make_column_transformer((OneHotEncoder(
        max_categories=3, handle_unknown="infrequent_if_exist", sparse_output=False,
        dtype=np.int8), CATEGORIES))]),
    (TICKETS, [make_column_transformer((OneHotEncoder(drop="if_binary", categories=[
        [1, 2, 3], [False, True]]), ["priority", "vip"]))]),
    (TICKETS, [make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["hours"]),
                                       (Normalizer(), slice(3, 4)))]),
    (TICKETS, [make_column_transformer((OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2,
        min_frequency=3), ["product", "country", "hours"])), SimpleImputer()]),
    (TICKETS, [make_column_transformer(
        (SimpleImputer(strategy="constant", fill_value="none", missing_values=None), ["product"]),
        remainder="drop"), one_hot()]),
    (TICKETS, [make_column_transformer(
        (SimpleImputer(missing_values=1, strategy="most_frequent"), ["priority"]),
        (SimpleImputer(strategy="median", keep_empty_features=True), ["hours", "empty"]))]),
    (TICKETS, [make_column_transformer(
        (FeatureUnion([("word", TfidfVectorizer()), ("svd", make_pipeline(
            ours.HashingVectorizer(n_features=64), TruncatedSVD(3, random_state=0)))]), "body"),
        ("passthrough", np.array([False, False, False, True, False, True, False])))]),
    (TICKETS["body"], [ours.TfidfVectorizer(), SelectKBest(chi2, k=5), TruncatedSVD(2)]),
    (ROWS, [SelectKBest(k=5), StandardScaler()]),
    (ROWS.astype("f4"), [SelectKBest(f_classif, k="all"), TruncatedSVD(
        4, random_state=np.random.RandomState(0)), Normalizer()]),
    (GAPS, [SimpleImputer(add_indicator=True), SelectKBest(k=40)]),
    (GAPS, [ColumnTransformer([("a", SimpleImputer(), [0, 1]), ("b", "passthrough", [])],
                              remainder=SimpleImputer(strategy="median"))]),
    (np.where(GAPS > 1, -1, GAPS > 0).astype(int), [OneHotEncoder()]),
    (np.array(TICKETS["country"], "U2")[:, np.newaxis], [OneHotEncoder(min_frequency=0.1)]),
])  # fmt: skip
def test_steps_for_columns_are_restored(path, X, steps):
    model = piped(*steps, X=X)
    save_model(model, path)
    loaded = load_model(path)
    tests = [X]
    if X is TICKETS and "handle_unknown" in repr(steps) and "drop" not in repr(steps):
        tests += [OTHERS, OTHERS[OTHERS.columns[::-1]].assign(more=1)]
    for rows in tests:
        if isinstance(rows, pd.DataFrame) and "more" in rows and "slice" in repr(steps):
            continue
        expected = model.decision_function(rows)
        assert loaded.decision_function(rows).tobytes() == expected.tobytes()
    names = (
        [each[:-1].get_feature_names_out().tolist() for each in (loaded, model)]
        if ("HashingVectorizer" not in repr(steps))
        else [[], []]
    )
    assert names[0] == names[1]
    for step, other in zip(loaded.steps, model.steps, strict=True):
        assert step[0] == other[0]
        assert type(step[1]) is type(other[1])
    before = path.read_bytes()
    save_model(loaded, path)
    again = load_model(path)
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    if "slice" not in repr(steps):
        assert path.read_bytes() == before
    assert "ALMAClassifier" in run("info", path).stdout
    run("inspect", path)


def test_a_rejector_of_a_table_is_restored(path):
    model = Rejector(make_pipeline(tickets(), ALMAClassifier(random_state=0)), max_error=0.5)
    model.fit(TICKETS, Y)
    save_model(model, path)
    assert (load_model(path).predict(OTHERS) == model.predict(OTHERS)).all()


@pytest.mark.parametrize(("step", "words"), [
    (SelectKBest(lambda X, y: np.arange(30.0)), r"score_func of SelectKBest.*joblib\.dump"),
    (SimpleImputer(strategy=np.max), "The strategy of SimpleImputer is a function.*joblib"),
    (make_column_transformer((one_hot(drop=["ch"]), ["country"])), "OneHotEncoder drops.*'first'"),
    (make_column_transformer((one_hot(max_categories=1), ["vip"])), "infrequent for OneHotEncoder"),
    (make_column_transformer((one_hot(), ["seen"])), "OneHotEncoder has learned a value of type"),
    (make_column_transformer((one_hot(feature_name_combiner=max), ["vip"])), "is a function"),
    (make_column_transformer((one_hot(), slice("country", "country"))), "Pass a list of names"),
    (make_column_transformer((one_hot(), ["vip"]), verbose_feature_names_out="{feature_name}"),
     "no bool.*True or False"),
    (make_column_transformer((FunctionTransformer(np.nan_to_num), ["hours"])),
     r"has a step FunctionTransformer.*joblib\.dump"),
    (make_column_transformer((make_pipeline("passthrough", one_hot()), ["vip"])),
     r"has a step 'passthrough'.*joblib\.dump"),
])  # fmt: skip
def test_steps_that_files_cannot_hold_are_refused(path, step, words):
    table = TICKETS.assign(seen=pd.Timestamp("2026-01-01"))
    is_table = isinstance(step, ColumnTransformer)
    with pytest.raises(ValueError, match=words):
        save_model(piped(step, X=table if is_table else ROWS), path)
    assert not path.exists()


def test_too_many_categories_are_refused(path, monkeypatch):
    model = piped(make_column_transformer((one_hot(), CATEGORIES)))
    save_model(model, path)
    monkeypatch.setattr(column_steps, "_MOST_ENTRIES", 20)
    for call in (lambda: save_model(model, path), lambda: load_model(path)):
        with pytest.raises(ValueError, match="OneHotEncoder has more categories"):
            call()


STEP = ("pipeline", "steps", 0, "dict")
LEARNED, PARAMETERS = (*STEP, "learned", "dict"), (*STEP, "parameters", "dict")
COLUMN = (*LEARNED, "columns", 1, "dict")
NOTHING = {"dict": {}}
SVD, KBEST = (TruncatedSVD(3), ROWS), (SelectKBest(k=5), ROWS)
IMPUTER, OBJECTS = (SimpleImputer(add_indicator=True), GAPS), (one_hot(), TICKETS[["product"]])
GROUPED = (OneHotEncoder(min_frequency=5), TICKETS[["country"]])
TABLE = (tickets(remainder="passthrough"), TICKETS)


@pytest.mark.filterwarnings("ignore:.*Skipping features")
@pytest.mark.parametrize(("saved", "place", "value", "words"), [
    (SVD, (*LEARNED, "components_"), [[1.0]], "'components_' is of another type"),
    (SVD, "components_", lambda a: a * np.nan, "TruncatedSVD has no components"),
    (SVD, "components_", lambda a: a[0], "is not an array of float64"),
    (SVD, "components_", lambda a: a[:, :0], "TruncatedSVD has no components"),
    (SVD, "components_", lambda a: a[:2], "is not an array of float64 of shape"),
    (SVD, (*PARAMETERS, "algorithm"), "os", "takes other parameters"),
    (KBEST, "scores_", lambda a: a[:9], "'pvalues_' is not an array"),
    (KBEST, (*PARAMETERS, "k"), 4, "its steps make 4 columns"),
    (KBEST, (*PARAMETERS, "score_func"), "SelectFpr", "'SelectFpr' is no score_func"),
    (KBEST, (*PARAMETERS, "score_func"), None, "'score_func' is of another type"),
    (IMPUTER, "statistics", lambda a: a[:4], "'indicated' holds"),
    (IMPUTER, "statistics", lambda a: a[:0], "has no rows"),
    (IMPUTER, "statistics", lambda a: np.array(["x"] * 30), "has no rows of numbers"),
    (IMPUTER, (*LEARNED, "dtype"), "U9", "has no rows of numbers"),
    (IMPUTER, (*LEARNED, "dtype"), "int64", "integer|NaN"),
    (IMPUTER, (*LEARNED, "indicated"), None, "has no indicator"),
    (IMPUTER, (*PARAMETERS, "missing_values"), NOTHING, "takes other parameters"),
    (OBJECTS, (*LEARNED, "categories"), [], "has no columns"),
    (OBJECTS, (*LEARNED, "categories"), [[]], "a column without categories"),
    (OBJECTS, (*LEARNED, "categories", 0), ["a", "a"], "has a category twice"),
    (OBJECTS, (*LEARNED, "categories", 0), ["a", np.nan, "b"], "has a category twice"),
    (OBJECTS, (*LEARNED, "categories", 0), ["a", ["b"]], "other values than numbers and text"),
    (OBJECTS, (*LEARNED, "categories", 0), 3, "other values than numbers and text"),
    (OBJECTS, (*LEARNED, "categories", 0), ["a", "b"], "its steps make 2 columns"),
    (OBJECTS, (*PARAMETERS, "categories"), [[0.0]], "has its categories twice"),
    (OBJECTS, (*LEARNED, "infrequent"), [], "has no columns"),
    (OBJECTS, (*LEARNED, "infrequent", 0), ["a"], "'infrequent' is not an array"),
    (OBJECTS, (*LEARNED, "given"), 1, "'given' is not True or False"),
    (OBJECTS, (*PARAMETERS, "drop"), ["b"], "drops a list"),
    (OBJECTS, (*PARAMETERS, "dtype"), "object", "makes no numbers"),
    (OBJECTS, (*PARAMETERS, "feature_name_combiner"), "os.system", "takes other parameters"),
    (GROUPED, "infrequent.0", lambda a: a + 99, "'infrequent' holds"),
    (GROUPED, "infrequent.0", lambda a: np.arange(5), "All categories of column 0 are infrequent"),
    (GROUPED, "infrequent.0", lambda a: a[:1], "its steps make"),
    (TABLE, (*LEARNED, "n_features_in_"), 2**40, "'n_features_in_' is not a whole number"),
    (TABLE, (*LEARNED, "n_features_in_"), 8, "'feature_names_in_' is not an array"),
    (TABLE, (*LEARNED, "columns"), [], "has other columns"),
    (TABLE, (*COLUMN, "at"), ["product", "nothing"], "takes unknown columns"),
    (TABLE, (*COLUMN, "at"), [1, 7], "takes unknown columns"),
    (TABLE, (*COLUMN, "at"), [1, True], "takes unknown columns"),
    (TABLE, (*COLUMN, "at"), [1, 2, 3], "takes 2 columns, not 3"),
    (TABLE, (*COLUMN, "one"), True, "takes unknown columns"),
    (TABLE, (*LEARNED, "members", 4, "dict", "name"), "rest", "has another remainder"),
    (TABLE, (*LEARNED, "remainder"), 1, "'remainder' is not True or False"),
    (TABLE, (*LEARNED, "remainder"), False, "names conflict"),
    (TABLE, (*LEARNED, "sparse_output"), None, "'sparse_output' is not True or False"),
    (TABLE, (*PARAMETERS, "text__input"), "filename", "has other parameters"),
    (TABLE, (*PARAMETERS, "transformer_weights"), {"dict": {"text": "x"}}, "are no numbers"),
    (TABLE, (*PARAMETERS, "n_jobs"), 10**6, "is no number of jobs"),
    (TABLE, (*PARAMETERS, "verbose_feature_names_out"), "{feature_name:>999999999}", "True or Fa"),
    (TABLE, (*LEARNED, "members", 0, "dict", "kind"), "os", "'os' is no step"),
    (TABLE, (*LEARNED, "members", 0, "dict", "kind"), "drop", "its steps make"),
    (TABLE, (*LEARNED, "members", 0, "dict", "parameters", "dict", "input"), "file", "no texts"),
    (TABLE, (*LEARNED, "members", 1, "dict", "learned", "dict", "members"), [], "no steps"),
    (TABLE, (*LEARNED, "members", 1, "dict", "learned", "dict", "members", 0, "dict", "kind"),
     "passthrough", "'passthrough' is no step"),
])  # fmt: skip
def test_invalid_states_are_rejected(path, saved, place, value, words):
    step, X = saved
    document, arrays = contents_of(piped(step, X=X))
    if isinstance(place, str):
        (name,) = [each for each in arrays if each.endswith(f"learned.{place}")]
        arrays[name] = value(arrays[name])
    else:
        at(document, place[:-1])[place[-1]] = value
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*({words})"):
        load_model(path)
