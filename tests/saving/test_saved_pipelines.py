"""Pipelines in model files are restored bit for bit, and no file can create any other step."""

import copy
import json
from math import nan

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from depth import some
from problems.command_line import run
from problems.hostile import at, contents_of, rewritten
from sparsemargin import ALMAClassifier, fit_text, load_model, save_model
from sparsemargin import text as ours
from sparsemargin.genomes import CellNormalizer

TEXTS = ["free money now", "see you now", "money, money", "you see the süß plan"] * 3
ROWS = np.random.RandomState(0).random_sample((12, 3))
Y = ["spam", "ham"] * 6


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def piped(*steps, X=TEXTS):
    return make_pipeline(*steps, ALMAClassifier(random_state=0)).fit(X, Y)


@pytest.mark.parametrize(("X", "steps"), [
    (TEXTS, [TfidfVectorizer()]),
    (TEXTS, [TfidfVectorizer(use_idf=False, ngram_range=(1, 2), stop_words=["the"],
                             dtype=np.float32)]),
    (TEXTS, [CountVectorizer(vocabulary=["see", "money"]), TfidfTransformer(), MaxAbsScaler()]),
    (TEXTS, [CountVectorizer(), TfidfTransformer(use_idf=False)]),
    (TEXTS, [HashingVectorizer(n_features=64), StandardScaler(with_mean=False), Normalizer()]),
    (TEXTS, [FeatureUnion([("a", TfidfVectorizer()), ("b", CountVectorizer(analyzer="char"))],
                          transformer_weights={"b": 0.5}), Normalizer()]),
    (TEXTS, [make_union(HashingVectorizer(n_features=64), CountVectorizer(), n_jobs=1)]),
    (TEXTS, [ours.TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32)]),
    (TEXTS, [ours.TfidfVectorizer(use_idf=False, analyzer="char_wb", ngram_range=(2, 4))]),
    (TEXTS, [ours.CountVectorizer(vocabulary=["see", "money"]), TfidfTransformer()]),
    (TEXTS, [ours.CountVectorizer(stop_words=["see"], min_df=2, max_features=3)]),
    (TEXTS, [ours.HashingVectorizer(n_features=64)]),
    (TEXTS, [ours.WordCharVectorizer(token_pattern=r"\w+|[^\w\s]", dtype=np.float64)]),
    (TEXTS, [ours.WordCharHashingVectorizer(64), Normalizer()]),
    (ROWS, [make_union(StandardScaler(), MaxAbsScaler())]),
    (ROWS, [StandardScaler()]),
    (ROWS.astype("f4"), [StandardScaler(with_std=False), MaxAbsScaler()]),
    (ROWS, []),
], ids=str)  # fmt: skip
def test_pipelines_are_restored(path, X, steps):
    model = piped(*steps, X=X)
    save_model(model, path)
    loaded = load_model(path)
    assert repr(loaded) == repr(model)
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    if steps and "HashingVectorizer" not in repr(steps):
        names = [each[:-1].get_feature_names_out().tolist() for each in (loaded, model)]
        assert names[0] == names[1]
    kinds = [
        "sparsemargin." * type(step).__module__.startswith("sparsemargin") + type(step).__name__
        for step in steps
    ]
    assert ", ".join(kinds) in run("info", path).stdout
    texts = path.with_suffix(".tsv")
    texts.write_text("".join(f"{label}\t{text}\n" for label, text in zip(Y, X, strict=True)))
    if kinds and kinds[0].endswith("Vectorizer"):
        predicted = "".join(f"{label}\n" for label in model.predict(X))
        assert run("predict", path, texts).stdout == predicted
        return
    for command in "predict", "evaluate":
        error = run(command, path, texts, code=1).stderr
        assert error.endswith(f"Use it in Python: sparsemargin.load_model('{path}').predict(X).\n")
        assert f" {' > '.join([*kinds, 'ALMAClassifier'])}, " in error


def test_inspect_names_the_features_of_a_pipeline(path):
    for steps, name in (
        ([TfidfVectorizer(), MaxAbsScaler()], "money"),
        ([CountVectorizer(vocabulary=["see", "money"]), TfidfTransformer()], "money"),
        ([HashingVectorizer(n_features=64), StandardScaler(with_mean=False)], None),
    ):
        model = piped(*steps)
        save_model(model, path)
        (entry,) = json.loads(run("inspect", path, "--json", "--top", "1").stdout)["strongest"]
        (strongest,) = entry["for"]
        name = name or str(model[-1].coef_.argmax() + 1)
        assert strongest == {"feature": name, "weight": model[-1].coef_.max()}


def test_unsupported_contents_are_named(path):
    for steps, words in (
        ([TfidfVectorizer(tokenizer=str.split, token_pattern=None)], "tokenizer of TfidfVec.* fun"),
        ([TfidfVectorizer(), NMF(2)], r"has a step NMF.*joblib\.dump"),
        ([FeatureUnion([("a", TfidfVectorizer()), ("b", "drop")])], r"has a step 'drop'"),
    ):
        with pytest.raises(ValueError, match=words):
            save_model(piped(*steps), path)
        assert not path.exists()


STEP = ("pipeline", "steps", 0, "dict")
PARAMETERS, LEARNED = (*STEP, "parameters", "dict"), (*STEP, "learned", "dict")


@pytest.mark.parametrize(("place", "value", "words"), [
    (("pipeline", "steps"), 3, "its steps are no list"),
    ((*STEP, "kind"), "FunctionTransformer", "is no step"),
    ((*STEP, "kind"), ["x"], "is no step"),
    ((*STEP, "name"), 3, "a step has no name"),
    ((*STEP, "name"), "a__b", "__"),
    (("pipeline", "last"), "tfidfvectorizer", "not unique"),
    ((*PARAMETERS, "input"), "filename", "reads no texts"),
    ((*PARAMETERS, "dtype"), "object", "makes no numbers"),
    ((*PARAMETERS, "norm"), "l3", "takes other parameters"),
    ((*PARAMETERS, "other"), 1, "takes other parameters"),
    ((*LEARNED, "words"), [1, 2], "'words' is not an array"),
    ((*LEARNED, "idf_"), [1, 2], "'idf_' is not an array"),
    ("pipeline.steps.0.learned.words", "money", "a word comes twice"),
    ("pipeline.steps.0.learned.idf_", 3, "'idf_' is not an array"),
    ("pipeline.steps.0.learned.idf_", nan, "'idf_' holds nan"),
])  # fmt: skip
def test_invalid_pipeline_steps_are_rejected(path, place, value, words):
    document, arrays = contents_of(piped(TfidfVectorizer()))
    if isinstance(place, str):
        name = next(name for name in arrays if name.endswith(place.removeprefix("pipeline.")))
        if value == "money":
            arrays[name] = np.frombuffer(b'["money", "money"]', np.uint8)
        elif value is nan:
            arrays[name] = arrays[name] * nan
        else:
            arrays[name] = arrays[name][:value]
    else:
        at(document, place[:-1])[place[-1]] = value
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*{words}"):
        load_model(path)


@pytest.mark.parametrize(("name", "array", "words"), [
    ("text", np.frombuffer(b"ab\xff", np.uint8), "codec"),
    ("ends", np.array([2, 1]), "does not lie in the text"),
    ("ends", np.array([2, 9]), "does not lie in the text"),
    ("text", np.frombuffer(b"abab", np.uint8), "a term comes twice"),
    ("text", np.frombuffer(b"ab c d ", np.uint8), "has an empty word"),
])  # fmt: skip
def test_damaged_vocabulary_is_rejected(path, name, array, words):
    model = make_pipeline(ours.CountVectorizer(), ALMAClassifier()).fit(["ab cd"] * 2, [0, 1])
    document, arrays = contents_of(model)
    arrays[next(each for each in arrays if each.endswith(f"terms.{name}"))] = array
    if words == "a term comes twice":
        arrays[next(each for each in arrays if each.endswith("terms.ends"))] = np.array([2, 4])
    elif words == "has an empty word":
        arrays[next(each for each in arrays if each.endswith("terms.ends"))] = np.array([2, 7])
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=words):
        load_model(path)


@pytest.mark.parametrize("kind", [TfidfVectorizer, ours.TfidfVectorizer])
def test_infinite_weights_of_unused_words_are_restored(path, kind):
    vectorizer = kind(vocabulary=["money", "plan", "unused"], smooth_idf=False)
    with np.errstate(divide="ignore"):
        model = piped(vectorizer)
    assert np.isinf(model[0].idf_[2])
    save_model(model, path)
    assert load_model(path).predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_fit_text_pipeline_is_restored(path):
    model = fit_text(TEXTS, Y, random_state=0)
    save_model(model, path)
    loaded = load_model(path)
    assert loaded.decision_function(TEXTS).tobytes() == model.decision_function(TEXTS).tobytes()
    before = model.vectorizer_
    assert loaded.vectorizer_.vocabulary_ == before.vocabulary_
    save_model(loaded, path)
    again = load_model(path).vectorizer_
    for name in "word_vectorizer_", "char_vectorizer_":
        assert getattr(again, name).idf_.tobytes() == getattr(before, name).idf_.tobytes()


MEMBERS = (*LEARNED, "members")


@pytest.mark.parametrize(("place", "value", "words"), [
    (MEMBERS, 3, "its steps are no list"),
    (MEMBERS, [], "another FeatureUnion"),
    ((*MEMBERS, 0, "dict", "kind"), "FunctionTransformer", "is no step"),
    ((*MEMBERS, 0, "dict", "name"), "b", "not unique"),
    ((*MEMBERS, 0, "dict", "parameters", "dict", "ngram_range"), 3, "takes other parameters"),
    ((*PARAMETERS, "transformer_weights"), {"dict": {"c": 1.0}}, "not present"),
    ((*PARAMETERS, "transformer_weights"), {"dict": {"a": "x"}}, "are no numbers"),
    ((*PARAMETERS, "other"), 1, "another FeatureUnion"),
])  # fmt: skip
def test_invalid_feature_unions_are_rejected(path, place, value, words):
    union = FeatureUnion([("a", TfidfVectorizer()), ("b", CountVectorizer())])
    document, arrays = contents_of(piped(union))
    at(document, place[:-1])[place[-1]] = value
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*{words}"):
        load_model(path)


def test_error_for_calibrated_models_suggests_a_remedy(path):
    calibrated = CalibratedClassifierCV(ALMAClassifier(), cv=2).fit(ROWS, Y)
    with pytest.raises(ValueError, match=r"CalibratedClassifierCV.*FrozenEstimator.*joblib\.dump"):
        save_model(calibrated, path)


@pytest.mark.parametrize(("steps", "place", "value", "words"), [
    ([HashingVectorizer(n_features=64)], (*PARAMETERS, "n_features"), 32, "32 columns"),
    ([HashingVectorizer(n_features=64), MaxAbsScaler()], (*PARAMETERS, "n_features"), 32,
     "MaxAbsScaler takes 64 columns, not 32"),
    ([make_union(HashingVectorizer(n_features=64), HashingVectorizer(n_features=8))],
     (*LEARNED, "members", 0, "dict", "parameters", "dict", "n_features"), 65, "73 columns"),
    ([CountVectorizer(vocabulary=["see", "money"])], (*PARAMETERS, "vocabulary"), ["see"],
     "vocabulary of CountVectorizer is not what it has learned"),
    ([CountVectorizer(vocabulary=["see", "money"])], (*PARAMETERS, "vocabulary"), ["money", "see"],
     "is not what it has learned"),
    ([ours.CountVectorizer(vocabulary=["see", "money"])], (*PARAMETERS, "vocabulary"),
     ["see", {"dict": {}}], "unhashable|no words"),
    ([ours.CountVectorizer()], (*PARAMETERS, "vocabulary"), ["see", "see"], "Duplicate term"),
    ([HashingVectorizer(n_features=64), MaxAbsScaler()], ("pipeline", "steps", 1, "dict", "kind"),
     "HashingVectorizer", "comes after another step"),
])  # fmt: skip
def test_inconsistent_steps_are_rejected(path, steps, place, value, words):
    document, arrays = contents_of(piped(*steps))
    at(document, place[:-1])[place[-1]] = value
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*({words})"):
        load_model(path)


@pytest.mark.parametrize(("step", "missing", "words"), [
    (ours.CountVectorizer(), "terms", "has no terms"),
    (ours.CountVectorizer(vocabulary=["see", "money"]), "words", "has no terms"),
    (CountVectorizer(), "words", "has no terms"),
    (TfidfVectorizer(), "idf_", "TfidfVectorizer has no idf_"),
    (ours.TfidfVectorizer(), "idf_", "TfidfVectorizer has no idf_"),
])  # fmt: skip
def test_incomplete_vectorizers_are_rejected(path, step, missing, words):
    document, arrays = contents_of(piped(step))
    del at(document, LEARNED)[missing]
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*{words}"):
        load_model(path)


@pytest.mark.parametrize(("step", "missing"), [
    (StandardScaler(), "mean_"), (StandardScaler(), "scale_"), (MaxAbsScaler(), "scale_"),
    (MaxAbsScaler(), "n_features_in_"),
])  # fmt: skip
def test_incomplete_scalers_are_rejected(path, step, missing):
    document, arrays = contents_of(piped(step, X=ROWS))
    del at(document, LEARNED)[missing]
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*no '?{missing}"):
        load_model(path)


SLOW = [
    {"token_pattern": r"(?u)(?:a|a)*(?:a|a)*$b"}, {"ngram_range": {"tuple": [1, 10**9]}},
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "words"), [
    ("scale", None, "no form_"),
    ("means_", None, "no means_"),
    ("form", "counts", "of the form 'counts' have no total"),
    ("means_", np.nan, "'means_' holds nan"),
    ("deviations_", np.inf, "'deviations_' holds inf"),
    ("deviations_", -1.0, "a negative deviation"),
])  # fmt: skip
def test_invalid_cell_normalizers_are_rejected(path, name, change, words):
    document, arrays = contents_of(piped(CellNormalizer(), X=np.arange(36).reshape(12, 3)))
    learned = at(document, LEARNED)
    if change is None:
        del learned[name]
    elif name == "form":
        learned["scale"]["dict"]["form"] = change
    else:
        name = f"pipeline.steps.0.learned.{name}"
        arrays[name] = np.full_like(arrays[name], change)
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=words):
        load_model(path)


@pytest.mark.parametrize("change", SLOW, ids=str)
@pytest.mark.parametrize("make", [ours.TfidfVectorizer, HashingVectorizer])
def test_slow_patterns_are_rejected_unless_trusted(path, make, change):
    document, arrays = contents_of(piped(make()))
    at(document, PARAMETERS).update(change)
    rewritten(path, document, arrays)
    told = f"^{path}.*trusted=True"
    with pytest.raises(ValueError, match=told):
        load_model(path)
    texts = path.with_suffix(".tsv")
    texts.write_text("spam\tfree money now\n")
    for command in ("predict", path, texts), ("evaluate", path, texts), ("inspect", path):
        error = run(*command, code=1).stderr
        assert error.startswith(f"Error: {path}: The ")
        assert "load it in Python: sparsemargin.load_model(PATH, trusted=True)." in error
    load_model(path, trusted=True)


def test_custom_token_pattern_is_restored_if_trusted(path):
    model = piped(TfidfVectorizer(token_pattern=r"[a-z]{3,}"))
    save_model(model, path)
    with pytest.raises(ValueError, match=r"The token_pattern of TfidfVectorizer is '\[a-z\]"):
        load_model(path)
    loaded = load_model(path, trusted=True)
    assert loaded.decision_function(TEXTS).tobytes() == model.decision_function(TEXTS).tobytes()


JUNK = some(
    [[1, {"dict": {}}], {"tuple": [0, 2]}, "x", 2.5],
    [None, True, -1, 0, 10**9, 10**400, [], {"tuple": []}, {"tuple": ["a", 2]}, {"dict": {"a": 1}},
     {"dict": {}}, [None], "zip_codec", "\0", {"array": "nothing"}, np.nan],
)  # fmt: skip
STEPS = [
    ours.TfidfVectorizer(), ours.CountVectorizer(vocabulary=["see", "money"]),
    ours.HashingVectorizer(n_features=64), TfidfVectorizer(), HashingVectorizer(n_features=64),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", some([*STEPS[:1], *STEPS[2:3]], STEPS), ids=repr)
def test_commands_report_invalid_vectorizer_parameters(path, step):
    """Each parameter is replaced by other values, which are harmless or refused with the path."""
    document, arrays = contents_of(piped(step))
    texts = path.with_suffix(".tsv")
    texts.write_text("spam\tfree money now\n")
    places = [(*PARAMETERS, name) for name in at(document, PARAMETERS)]
    places += [(*LEARNED, name) for name in at(document, LEARNED)]
    for place in places:
        for value in JUNK:
            changed = copy.deepcopy(document)
            at(changed, place[:-1])[place[-1]] = value
            rewritten(path, changed, arrays)
            told = run("predict", path, texts, code=None)
            assert "inside sparsemargin" not in told.stderr, (place, value, told.stderr)
            assert told.exit_code == 0 or str(path) in told.stderr, (place, value, told.stderr)
