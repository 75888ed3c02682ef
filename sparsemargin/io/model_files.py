"""Models in files: written whole or not at all, and read without running anything a file brings.

A model file holds all that learning on takes: a loaded model predicts, and goes on with
`partial_fit` or under `warm_start`, to the bit as the saved one would. It is an npz archive with a
document, ``model.json``, into which any program can look. Two formats were passed over. Pickles run
what they hold. skops looks up types by the names in the file, and imports scikit-learn, which takes
a second and 112 MB: more than a command should that only predicts. What a model holds is plain
enough to be written down: parameters, arrays, and a few objects of the engine, which check the
states they are given. Of a pipeline's other steps those are kept whose states are as plain.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemargin._engine.core.labels import FirstOrderRule, FirstOrderSpace
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.state import (
    MAX_TRIALS,
    array_of,
    fields,
    flag,
    integer,
    optional,
    part,
    real,
    require,
)
from sparsemargin.io import pipelines
from sparsemargin.io._values import Decoder, Encoder
from sparsemargin.io.archive import (
    HEAD_BYTES,
    MODEL_DOCUMENT,
    Archive,
    ArchiveWriter,
    DamagedError,
    begins_with,
)
from sparsemargin.io.files import replacing
from sparsemargin.io.reading import MOST_HASH_BITS
from sparsemargin.io.sources import whereabouts
from sparsemargin.models import LEARNERS, Learner
from sparsemargin.models.base import count_labels
from sparsemargin.models.in_use import asks
from sparsemargin.models.labels import FORMS
from sparsemargin.models.pipelines import is_choosing, names_out_of, taken

if TYPE_CHECKING:
    from sparsemargin.models.classifiers import Classifier

_FORMAT, _VERSION = "sparsemargin model", 1
_LONGEST_MESSAGE = 500
_NO_MODEL = "This is not a model file. save_model and sparsemargin train write them."

# Attributes that are made again when they are asked for.
_CACHES = {"_coef"}


def _is_ours(model: Any) -> bool:
    """Whether a model is a learner, or a classifier of this library, but no subclass of one."""
    name = getattr(model, "classifier", "")
    if type(model) is LEARNERS.get(name) or is_choosing(model):
        return True
    from sparsemargin.models import classifiers

    return name in LEARNERS and type(model) is getattr(classifiers, name)


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted classifier of this library, so that `load_model` gives it back to the bit; or a
    pipeline that ends in one. Of an `AutoClassifier`, or a search, it is `best_estimator_`.

    Of a pipeline the other steps may be scikit-learn's `CountVectorizer`, `TfidfVectorizer`,
    `HashingVectorizer`, `TfidfTransformer`, `StandardScaler`, `MaxAbsScaler`, `Normalizer`, and a
    `FeatureUnion` of these, without functions among their parameters. Of the commands, ``info`` and
    ``inspect`` read such a file; the others don't, as its rows are not those of svmlight text.

    Of a classifier all is saved: parameters, weights, averages, the pool of a kernel, the logs that
    `hypothesis="vote"` and ``"random"`` are replayed from, certificates. Weights that are mostly 0
    take the room of the others. A file that was at `path` stays until the new one is complete, and
    where that fails. The same model gives the same bytes.

    Parameters
    ----------
    model : classifier, pipeline or Learner
    path : path
        By custom ``*.model``.

    Raises
    ------
    ValueError
        If the model is none of this library or not fitted, or has a parameter that it would not
        take, or a function for its kernel, or an attribute or a step that model files have no place
        for; names it.
    OSError
        If the file can't be written; names it.
    RuntimeError
        If another thread fits the model.
    """
    steps: list[tuple[str, Any]] = []
    model = taken(model)
    if not _is_ours(model):
        steps = pipelines.steps_of(model)
        model = taken(steps[-1][1]) if steps else model
    name = type(model).__name__
    if not _is_ours(model):
        raise ValueError(
            f"A model file holds a classifier of sparsemargin, got {type(model).__module__}.{name}."
            " Of CalibratedClassifierCV save the classifier within, fitted to all rows, and "
            "calibrate what load_model gives, in a FrozenEstimator; or keep the whole of it by "
            "joblib.dump or skops."
        )
    if not hasattr(model, "classes_"):
        raise ValueError(f"This {name} has learned nothing yet. Call fit or partial_fit first.")
    _save(model, path, steps)


def set_aside(model: Any, path: str | os.PathLike[str], error: OSError) -> None:
    """Save a model that could not be saved at `path` in the temporary folder; a note to the error
    says where."""
    name = f"{secrets.token_hex(6)}-{os.path.basename(path)}"
    try:
        aside = os.path.join(tempfile.gettempdir(), name)
        save_model(model, aside)
    except OSError as another:
        error.add_note(f"Nor could what has been learned be saved elsewhere: {another}.")
    else:
        error.add_note(f"What has been learned is in {aside}.")


@asks
def _save(model: Any, path: str | os.PathLike[str], steps: list[tuple[str, Any]]) -> None:
    """Save a model that has learned, with the steps of the pipeline that ends in it, if any."""
    model._check_parameters()
    parameters = model._parameters()
    if callable(parameters.get("kernel")):
        raise ValueError(
            f"This {type(model).__name__} has a function for its kernel, which a model file can't "
            "hold: nothing in one is run. Pickle the model, or fit it with kernel='precomputed'."
        )
    state = {
        attribute: value
        for attribute, value in vars(model).items()
        if attribute not in parameters and attribute not in _CACHES
    }
    _check(model.classifier, state)
    from sparsemargin._version import __version__

    encoder = Encoder()
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "library": __version__,
        "class": model.classifier,
        "parameters": encoder.encode_named(dict(sorted(parameters.items()))),
        "state": encoder.encode_named(dict(sorted(state.items()))),
    }
    if steps:
        kept = pipelines.encoded(steps[:-1])
        named = {"steps": kept, "last": steps[-1][0]}
        document["pipeline"] = encoder.encode_named(named, "pipeline.")
    with replacing(path) as file, ArchiveWriter(file) as archive:
        archive.document(MODEL_DOCUMENT, document)
        for name, array in encoder.arrays.items():
            archive.array(name, array)


def load_model(path: str | os.PathLike[str]) -> Classifier:
    """Load a classifier, or a pipeline, that `save_model` saved.

    Nothing in the file is run. It is safe to load one from anywhere: what it holds is checked, so
    that no file can make the library read or write where it should not. What the model predicts
    is, of course, as good as where it comes from.

    Parameters
    ----------
    path : path

    Returns
    -------
    classifier or pipeline
        Of the class, with the parameters and at the point where it was saved.

    Raises
    ------
    ValueError
        If the file is no model file, was cut short or changed, was written by a newer version
        in another format, or holds what no model does. Names the file.
    OSError
        If the file can't be read.
    """
    learner, _, steps = _load(path)
    from sparsemargin.models.classifiers import as_classifier

    model = as_classifier(learner)
    _check_names(path, type(model), set(vars(model)) - set(model.parameter_names()))
    return model if steps is None else _as_pipeline(path, model, steps)


def _as_pipeline(path: str | os.PathLike[str], model: Any, steps: Any) -> Any:
    from sklearn.pipeline import Pipeline

    try:
        before = pipelines.decoded(part(steps, "steps"), model.n_features_in_)
        pipeline = Pipeline([*before, (part(steps, "last"), model)])
        pipeline._validate_names([name for name, _ in pipeline.steps])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: {str(error)[:_LONGEST_MESSAGE]}") from None
    return pipeline


def load_learner(path: str | os.PathLike[str]) -> Learner:
    """`load_model` without scikit-learn: gives what the classifier learns by."""
    learner, _, steps = _load(path)
    if steps is not None:
        kinds = [*pipelines.kinds_of(part(steps, "steps")), learner.classifier]
        rows = "texts" if kinds[0].endswith("Vectorizer") else "X"
        raise ValueError(
            f"{os.fspath(path)} holds a pipeline, {' > '.join(kinds)}, which "
            "takes other rows than those of svmlight text. Ask it in Python: sparsemargin."
            f"load_model({os.fspath(path)!r}).predict({rows})."
        )
    return learner


def load_with_names(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """What a classifier, or the last step of a pipeline, learns by; and the names that the steps
    before it give to its features, None where they give none."""
    learner, _, steps = _load(path)
    return learner, steps and names_out_of(_as_pipeline(path, learner, steps)[:-1])


def _check_names(path: str | os.PathLike[str], kind: type[Learner], state: Iterable[str]) -> None:
    """Refuse what would take the place of a parameter or a method."""
    taken = [name for name in state if name in kind.parameter_names() or hasattr(kind, name)]
    if taken:
        raise ValueError(f"{os.fspath(path)}: {taken[0]!r} is nothing that a model learns.")


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `summarise` tells of a model in a file, without scikit-learn; and ``library``, the
    version that wrote the file, and, of a pipeline, ``steps``, the types of those before the
    model."""
    learner, library, pipeline = _load(path)
    steps = {} if pipeline is None else {"steps": pipelines.kinds_of(pipeline["steps"])}
    return {**summarise(learner), **steps, "library": library}


def summarise(model: Any) -> dict[str, Any]:
    """What to tell of a model that has learned, by name.

    ``n_iter`` are the epochs of the last call that learned, ``n_trials`` those of all;
    ``n_corrections`` is an int for two classes and for a joint machine, else a list; ``n_support``,
    the rows of the pool, is of models with a kernel only.
    """
    state = vars(model)
    space = state["_space"]
    classes, corrections = state["classes_"].tolist(), space.per_label("corrections").tolist()
    pool = {"n_support": space.n_support} if hasattr(space, "support") else {}
    return {
        "class": model.classifier,
        "settings": model._parameters(),
        "classes": classes,
        "many_labels": "_label_form" in state,
        "n_features": state["n_features_in_"],
        "n_iter": state.get("n_iter_"),
        "n_trials": space.trials,
        "n_corrections": corrections[0] if len(corrections) < len(classes) else corrections,
        **pool,
    }


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """The archive of a model file; what is raised within, but for OSErrors, comes out as a
    ValueError that names the file."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such model. {whereabouts(os.fspath(path))}")
    # To open a pipe might wait for ever.
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError(f"{path}: {_NO_MODEL}")
    with open(path, "rb") as file:
        try:
            if not begins_with(file.read(HEAD_BYTES), MODEL_DOCUMENT):
                raise ValueError(_NO_MODEL)
            yield Archive(file)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            what = str(error)
            if isinstance(error, DamagedError):
                what = (
                    f"This model file was cut short or has been changed: {error}. Copy it again "
                    "from where it was saved, or save the model again."
                )
            elif not isinstance(error, ValueError):
                what = f"This is not what save_model writes. {type(error).__name__}: {error}"
            # A message may quote the file, at any length.
            raise ValueError(f"{os.fspath(path)}: {what[:_LONGEST_MESSAGE]}") from error


def _load(path: str | os.PathLike[str]) -> tuple[Learner, str, Any]:
    """The model, the library's version that wrote it, and what is kept of a pipeline, None for
    none."""
    with _opened(path) as archive:
        document = archive.document(MODEL_DOCUMENT)
        _check_version(document)
        decoder = Decoder(archive)
        name, parameters, state = (part(document, key) for key in ("class", "parameters", "state"))
        library = part(document, "library")
        require(name in LEARNERS, f"there is no classifier {name!r}")
        state = decoder.decode_named(state)
        _check(name, state)
        parameters = decoder.decode_named(parameters)
        steps = None
        if "pipeline" in document:
            steps = decoder.decode_named(document["pipeline"])
            pipelines.kinds_of(part(steps, "steps"))
    try:
        learner = LEARNERS[name](**parameters)
        learner._check_parameters()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} was written by sparsemargin {library}, whose {name} takes other "
            f"parameters: {error}"
        ) from None
    _check_names(path, type(learner), state)
    vars(learner).update(state, **dict.fromkeys(_CACHES))
    return learner, library, steps


def _check_version(document: Any) -> None:
    if part(document, "format") != _FORMAT:
        raise ValueError("This is not a model file of sparsemargin.")
    version = integer(document, "version", 1, np.iinfo(np.int64).max)
    if version != _VERSION:
        raise ValueError(
            f"This model file has format {version}, of sparsemargin {part(document, 'library')}; "
            f"this version reads format {_VERSION}. Update sparsemargin to load it."
        )


def _n_labels(classes: Any, state: dict[str, Any]) -> int:
    """Vectors learned side by side, by the classes of a model with that state."""
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "'classes_' are no classes")
    many = "_label_form" in state
    require(len(classes) >= (1 if many else 2), "'classes_' are too few")
    return count_labels(classes, many)


def _check(name: str, state: dict[str, Any]) -> None:
    """Refuse a state whose parts, each sound by itself, don't go together."""
    classes, space = part(state, "classes_"), part(state, "_space")
    n_labels = _n_labels(classes, state)
    require(type(space) in LEARNERS[name].spaces, f"'_space' is none of {name}")
    require(space.n_labels == n_labels, f"'_space' is not of {n_labels} labels")
    n_features = integer(state, "n_features_in_", space.n_features, space.n_features)
    require(bool((classes[1:] > classes[:-1]).all()), "'classes_' do not rise")
    array_of(state, "_class_weight", np.float64, (2, n_labels))
    if "_typical_weight" in state:
        real(state, "_typical_weight", 5e-324, sys.float_info.max)
    if "_seen" in state:
        array_of(state, "_seen", np.int64, (2, len(classes)), 0, MAX_TRIALS)
    integer(state, "_slice_seed", 0, np.iinfo(np.int32).max)
    if "_trials_before" in state:
        integer(state, "_trials_before", 0, MAX_TRIALS)
    if "_trials_per_epoch" in state:
        integer(state, "_trials_per_epoch", 1, MAX_TRIALS)
    require(isinstance(part(state, "_structure"), dict), "'_structure' is no dict")
    _check_learning(state, n_features)
    if "feature_names_in_" in state:
        array_of(state, "feature_names_in_", object, (n_features,))
    if "_label_form" in state:
        form = state["_label_form"]
        require(isinstance(form, str) and form in FORMS, "'_label_form' is no form of labels")
        require(space.takes_many_labels, "'_space' is of rows with one class each")
    if isinstance(space, FirstOrderSpace):
        require(isinstance(part(state, "_rule"), FirstOrderRule), "'_rule' is no rule")
    # A vote needs a log to replay.
    replayed = part(state["_structure"], "hypothesis") in ("vote", "random")
    require(replayed == space.logged, "'_structure' has another hypothesis than '_space'")


def _check_learning(state: dict[str, Any], n_features: int) -> None:
    """Refuse what is told of how a model has learned, where that can't be."""
    if "n_iter_" in state:
        real(state, "n_iter_", 0, np.inf)
    if "eta_eff_" in state:
        real(state, "eta_eff_", 5e-324, sys.float_info.max)
    if "_reading" in state:
        known = {"zero_based": (flag,), "hash_bits": (optional, integer, 1, MOST_HASH_BITS)}
        bits = fields(state["_reading"], known)["hash_bits"]
        sound = len(state["_reading"]) == len(known) and bits in (None, log2(n_features))
        require(sound, "'_reading' is of another model")
    outcome, learned = state.get("_outcome"), state.get("_learned")
    require(outcome is None or isinstance(outcome, FitResult), "'_outcome' is of another type")
    require(
        learned is None
        or (isinstance(learned, tuple) and len(learned) == 2 and isinstance(learned[0], str)),
        "'_learned' is of another type",
    )
