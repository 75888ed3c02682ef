"""Pipelines in model files: encoding and decoding of the steps before the classifier.

The table of steps is closed: a name in a file is looked up in it and nowhere else. A step is made
by its constructor, its parameters are checked (`sparsemargin.saving.step_checks`), and its learned
attributes are checked and set. scikit-learn is imported on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import isnan, nan
from numbers import Real
from typing import Any, get_args

import numpy as np

from sparsemargin import text
from sparsemargin._engine import state as states
from sparsemargin._engine.state import array_of, integer, part, require
from sparsemargin.genomes.scales import Scale, ValueScale, has_total
from sparsemargin.saving import column_steps as columns
from sparsemargin.saving import step_checks as checks
from sparsemargin.text.hashed_terms import HashedTerms
from sparsemargin.text.vocabulary import Vocabulary

_TEXT, _SCALING = "sklearn.feature_extraction.text", "sklearn.preprocessing"
_DTYPES = "float32", "float64", "int8", "int32", "int64", "uint8", "bool"
# Words that a ColumnTransformer may have in place of steps.
_NO_STEPS = "drop", "passthrough"

# Prefix of this library's steps in files, some of which have the same names as scikit-learn's.
_OURS = "sparsemargin."

_CELLS = f"{_OURS}CellNormalizer"
_FLAGS = "raw", "of_genes"  # fields of a `Scale`

# The module of each step, and its learned arrays with one number for each column.
_STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ColumnTransformer": ("sklearn.compose", ()),
    "CountVectorizer": (_TEXT, ()),
    "FeatureUnion": ("sklearn.pipeline", ()),
    "HashingVectorizer": (_TEXT, ()),
    "MaxAbsScaler": (_SCALING, ("max_abs_", "scale_")),
    "Normalizer": (_SCALING, ()),
    "OneHotEncoder": (_SCALING, ()),
    "OrdinalEncoder": (_SCALING, ()),
    "Pipeline": ("sklearn.pipeline", ()),
    "SelectKBest": ("sklearn.feature_selection", ()),
    "SimpleImputer": ("sklearn.impute", ()),
    "StandardScaler": (_SCALING, ("mean_", "var_", "scale_")),
    "TfidfTransformer": (_TEXT, ("idf_",)),
    "TfidfVectorizer": (_TEXT, ("idf_",)),
    "TruncatedSVD": ("sklearn.decomposition", ()),
    _CELLS: ("sparsemargin.genomes", ("deviations_", "means_")),
    f"{_OURS}CountVectorizer": ("sparsemargin.text", ()),
    f"{_OURS}HashingVectorizer": ("sparsemargin.text", ()),
    f"{_OURS}KmerVectorizer": ("sparsemargin.genomes", ()),
    f"{_OURS}TfidfVectorizer": ("sparsemargin.text", ("idf_",)),
    f"{_OURS}WordCharHashingVectorizer": ("sparsemargin.text", ()),
    f"{_OURS}WordCharVectorizer": ("sparsemargin.text", ()),
}


def steps_of(model: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline (of scikit-learn or this library), otherwise an empty list."""
    return list(model.steps) if type(model) in text.pipeline.PIPELINES else []


def encoded(steps: list[tuple[str, Any]], also: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Encode fitted steps. A ValueError names a step that model files can't hold. `also` has the
    words that may stand in place of a step."""
    return [{"name": name, **_encoded(step, also)} for name, step in steps]


def _encoded(step: Any, also: Sequence[str]) -> dict[str, Any]:
    if isinstance(step, str) and step in also:
        return {"kind": step, "parameters": {}, "learned": {}}
    if steps_of(step):
        within = {"members": encoded(steps_of(step))}
        return {"kind": "Pipeline", "parameters": {}, "learned": within}
    kind = type(step).__name__
    if type(step).__module__.startswith(_OURS):
        kind = f"{_OURS}{kind}"
    if kind not in _STEPS or type(step) is not _kind(kind):
        theirs = {each.removeprefix(_OURS) for each in _STEPS}
        raise ValueError(
            f"The pipeline has a step {step!r}. A model file can hold the steps "
            f"{', '.join(sorted(theirs))} and a classifier of sparsemargin. Save only the "
            "classifier, pipeline[-1], or save the whole pipeline with joblib.dump."
        )
    parameters = step.get_params(deep=False)
    learned = columns.learned_of(kind, step, parameters) if kind in columns.KINDS else {}
    if kind == "ColumnTransformer":
        members, learned = columns.saved_columns(step, parameters)
        learned = {"members": encoded(members, _NO_STEPS), **learned}
        return {"kind": kind, "parameters": parameters, "learned": learned}
    for name, value in parameters.items():
        if callable(value) and name != "dtype":
            raise ValueError(
                f"The {name} of {kind} is a function. A model file can't hold functions, because "
                "loading one never runs code from it. Save the pipeline with joblib.dump."
            )
    if "dtype" in parameters:
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
    if "transformer_list" in parameters:
        members = encoded(parameters.pop("transformer_list"))
        return {"kind": kind, "parameters": parameters, "learned": {"members": members}}
    if hasattr(step, "word_vectorizer_"):
        members = encoded([("word", step.word_vectorizer_), ("char", step.char_vectorizer_)])
        learned = {each["name"]: each["learned"] for each in members}
        return {"kind": kind, "parameters": parameters, "learned": learned}
    known = ("n_features_in_", "feature_names_in_", "n_samples_seen_", *_STEPS[kind][1])
    learned |= {name: getattr(step, name) for name in known if hasattr(step, name)}
    if kind == _CELLS and hasattr(step, "form_"):
        form, total, *flags = step.scale
        total = None if isnan(total) else total
        learned["scale"] = {"form": form, "total": total, **dict(zip(_FLAGS, flags, strict=True))}
    compiled = getattr(step, "compiled_vocabulary", None)
    if compiled is not None:
        learned["terms"] = compiled.saved()
    elif hasattr(step, "terms_"):
        learned["hashed"] = HashedTerms.saved(step.terms_)
    elif hasattr(step, "vocabulary_"):
        learned["words"] = step.get_feature_names_out()
    return {"kind": kind, "parameters": parameters, "learned": learned}


def kinds_of(steps: Any, also: Sequence[str] = ()) -> list[str]:
    """Return the types of encoded steps. Raise a ValueError if one is unknown. `also` is as for
    `encoded`."""
    require(isinstance(steps, list), "its steps are no list")
    kinds = [part(each, "kind") for each in steps]
    for kind in kinds:
        require(isinstance(kind, str) and kind in (*_STEPS, *also), f"{kind!r} is no step")
    return kinds


def decoded(steps: Any, n_features: int, *, trusted: bool) -> list[tuple[str, Any]]:
    """Restore the named steps before a classifier that takes `n_features` features.

    Raises a ValueError if a state is invalid, or if a step could run forever and the file is not
    `trusted`.
    """
    checks.check_order(kinds_of(steps))
    made = _all_decoded(steps, trusted)
    checks.check_widths([step for _, step in made], n_features)
    return made


def _all_decoded(steps: Any, trusted: bool, also: Sequence[str] = ()) -> list[tuple[str, Any]]:
    made = []
    for kind, each in zip(kinds_of(steps, also), steps, strict=True):
        name = part(each, "name")
        require(isinstance(name, str), "a step has no name")
        state = part(each, "parameters"), part(each, "learned")
        made.append((name, kind if kind in also else _decoded(kind, *state, trusted)))
    return made


def _decoded(kind: str, parameters: Any, learned: Any, trusted: bool) -> Any:
    require(isinstance(parameters, dict) and isinstance(learned, dict), f"{kind} is damaged")
    # With input="file" or "filename" the vectorizer would open files that are named in the data.
    require(parameters.get("input", "content") == "content", f"{kind} reads no texts")
    if "dtype" in parameters:
        dtype = parameters["dtype"]
        require(dtype in _DTYPES, f"{kind} makes no numbers")
        parameters = {**parameters, "dtype": np.dtype(dtype).type}
    if kind == "FeatureUnion":
        return _decoded_union(parameters, part(learned, "members"), trusted)
    if kind == "ColumnTransformer":
        members = _all_decoded(part(learned, "members"), trusted, _NO_STEPS)
        return columns.restored_columns(members, parameters, learned)
    if kind == "Pipeline":
        return _decoded_pipeline(part(learned, "members"), trusted)
    try:
        step = _kind(kind)(**columns.given_parameters(kind, parameters))
        checks.check_parameters(kind, step, trusted)
    except TypeError as error:
        raise ValueError(f"This scikit-learn's {kind} takes other parameters: {error}") from None
    if kind == f"{_OURS}WordCharVectorizer":
        _restore_families(step, learned)
        return step
    if columns.restore(kind, step, learned):
        _restore_attributes(kind, step, learned, step.n_features_in_)
        return step
    if kind.endswith(("CountVectorizer", "TfidfVectorizer")):
        width = _restore_vocabulary(kind, step, learned)
    elif "n_features_in_" in learned or _STEPS[kind][1]:
        step.n_features_in_ = width = integer(learned, "n_features_in_", 1, np.iinfo(np.int64).max)
    else:
        width = None
    _restore_attributes(kind, step, learned, width)
    checks.check_learned(kind, step)
    return step


def _restore_families(step: Any, learned: dict[str, Any]) -> None:
    """Restore both vectorizers of a step of words and character n-grams."""
    vectorizers, kind = step.vectorizers(), f"{_OURS}TfidfVectorizer"
    for name, each in zip(("word", "char"), vectorizers, strict=True):
        own = part(learned, name)
        require(isinstance(own, dict), f"{kind} is damaged")
        _restore_attributes(kind, each, own, _restore_vocabulary(kind, each, own))
        checks.check_learned(kind, each)
    step.set_fitted(vectorizers)


def _restore_vocabulary(kind: str, step: Any, learned: dict[str, Any]) -> int:
    """Restore the terms of a vectorizer, and return their number."""
    if "terms" in learned:
        arrays = {name: array_of(learned["terms"], name, dtype, (None,))
                  for name, dtype in (("text", np.uint8), ("ends", np.int64))}  # fmt: skip
        step.vocabulary_ = Vocabulary.restored(arrays, step.analyzer == "word")
        vocabulary = step.compiled_vocabulary
    else:
        require("words" in learned, f"{kind} has no terms")
        words = array_of(learned, "words", object, (None,)).tolist()
        step.vocabulary_ = vocabulary = {word: i for i, word in enumerate(words)}
        require(len(vocabulary) == len(words), "a word comes twice")
    step.fixed_vocabulary_ = step.vocabulary is not None
    checks.check_fixed_vocabulary(kind, step, vocabulary)
    return len(vocabulary)


def _restore_attributes(kind: str, step: Any, learned: dict[str, Any], width: int | None) -> None:
    """Restore the other learned attributes of a step with `width` columns."""
    if "hashed" in learned:
        step.terms_ = HashedTerms.restored(learned["hashed"], step.n_features)
    if "feature_names_in_" in learned:
        step.feature_names_in_ = array_of(learned, "feature_names_in_", object, (width,))
    if "scale" in learned:
        step.scale = _restored_scale(learned["scale"])
    if "n_samples_seen_" in learned:
        step.n_samples_seen_ = _n_samples(learned, width)
    if kind.endswith("TfidfVectorizer"):
        names = "norm", "use_idf", "smooth_idf", "sublinear_tf"
        step._tfidf = _kind("TfidfTransformer")(**{name: getattr(step, name) for name in names})
        step._tfidf.n_features_in_ = width
    for name in _STEPS[kind][1]:
        if learned.get(name) is not None:
            dtype = getattr(learned[name], "dtype", None)
            dtype = np.float32 if dtype == np.float32 else np.float64
            # Scalers have NaN for columns without values, and `idf_` may be infinite.
            most = np.inf if name == "idf_" else np.finfo(dtype).max
            limits = () if kind.endswith("Scaler") else (-most, most)
            # The vectorizer's own setter of `idf_` would build a dict of all terms.
            owner = getattr(step, "_tfidf", step)
            setattr(owner, name, array_of(learned, name, dtype, (width,), *limits))
        elif name in learned:
            setattr(step, name, None)


def _n_samples(learned: dict[str, Any], width: int | None) -> Any:
    """Return and check `n_samples_seen_`: a number of rows, or an array with one for each column
    if values were missing."""
    found = learned["n_samples_seen_"]
    sound = isinstance(found, Real) and float(found) >= 0
    if isinstance(found, np.ndarray):
        sound = found.dtype.kind in "if" and found.shape == (width,)
    require(sound, "'n_samples_seen_' is no number of rows")
    return found


def _restored_scale(state: Any) -> Any:
    form = states.instance(state, "form", str)
    require(form in get_args(ValueScale), f"{form!r} is no form of values")
    total = states.optional(
        state, "total", states.real, np.finfo(np.float64).tiny, np.finfo(np.float64).max
    )
    require(total is None or has_total(form), f"values of the form {form!r} have no total")
    raw, of_genes = (states.flag(state, each) for each in _FLAGS)
    require(total is not None or not of_genes, "'of_genes' has no total")
    return Scale(form, nan if total is None else total, raw, of_genes)


def _decoded_union(parameters: dict[str, Any], members: Any, trusted: bool) -> Any:
    checks.check_weights("FeatureUnion", parameters)
    try:
        union = _kind("FeatureUnion")(_all_decoded(members, trusted), **parameters)
        checks.check_jobs("FeatureUnion", union)
        union._validate_transformers()
        union._validate_transformer_weights()
    except (TypeError, ValueError) as error:
        raise ValueError(f"This scikit-learn takes another FeatureUnion: {error}") from None
    return union


def _decoded_pipeline(members: Any, trusted: bool) -> Any:
    """Return a pipeline of steps, which is a step itself."""
    checks.check_order(kinds_of(members))
    made = _kind("Pipeline")(_all_decoded(members, trusted))
    require(len(made.steps) > 0, "a pipeline has no steps")
    made._validate_names([name for name, _ in made.steps])
    checks.check_widths([step for _, step in made.steps])
    return made


def _kind(name: str) -> Any:
    return getattr(import_module(_STEPS[name][0]), name.removeprefix(_OURS))
