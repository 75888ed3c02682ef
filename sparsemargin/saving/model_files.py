"""Model files, which are written atomically and loaded without running code from the file.

A model file holds the complete state of a model. A loaded model predicts, and continues with
`partial_fit` or `warm_start`, bit-identically to the saved one. The file is an npz archive with a
JSON document, ``model.json``, that any program can read. Two other formats were rejected. Pickles
run code. skops looks up types by the names in the file, and imports scikit-learn, which takes a
second and 112 MB: too much for a command that only predicts. A model consists of parameters, arrays
and a few objects of the engine, which check the state that they are given. The other steps of a
pipeline can be saved if their states are as simple.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.state import array_of, integer, optional, part, require
from sparsemargin.files.archive import (
    HEAD_BYTES,
    MODEL_DOCUMENT,
    Archive,
    ArchiveWriter,
    DamagedError,
    begins_with,
)
from sparsemargin.files.atomic import replacing
from sparsemargin.files.remote import fetched, is_url
from sparsemargin.files.sources import whereabouts
from sparsemargin.models import LEARNERS, Learner
from sparsemargin.models.fitted.in_use import asks
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.kernels import Function
from sparsemargin.models.pipelines import is_choosing, is_of_library, names_out_of, taken
from sparsemargin.saving import steps as pipelines
from sparsemargin.saving.values import Decoder, Encoder

_FORMAT, _VERSION = "sparsemargin model", 1
_LONGEST_MESSAGE = 500
_NO_MODEL = "This is not a model file. save_model and sparsemargin train write them."

# Attributes of a fitted model other than its parameters; `_learned` is a `Fitted`.
_KNOWN = {"_learned", "n_features_in_", "feature_names_in_"}


def _is_ours(model: Any) -> bool:
    """Return whether a model is a learner or classifier of this library, not a user's subclass."""
    if not isinstance(model, Learner):
        return is_choosing(model)
    return type(model) is LEARNERS[model.classifier] or is_of_library(model, model.classifier)


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted classifier of this library, or a pipeline that ends in one, to a file.

    `load_model` returns the same model, bit for bit. For an `AutoClassifier` or a search,
    `best_estimator_` is saved.

    The other steps of a pipeline may be this library's vectorizers and `CellNormalizer`, and
    scikit-learn's `CountVectorizer`, `TfidfVectorizer`, `HashingVectorizer`, `TfidfTransformer`,
    `StandardScaler`, `MaxAbsScaler`, `Normalizer`, and a `FeatureUnion` of these. Their parameters
    must not be functions. The commands ``info`` and ``inspect`` read any such file. The commands
    that predict read a pipeline only if its first step takes texts or cells.

    The complete state of a classifier is saved: parameters, weights, averages, the pool of a
    kernel, the logs from which `hypothesis="vote"` and ``"random"`` are replayed, and certificates.
    Zero weights take little space. The file is written atomically: after an error, the old file is
    still there. The same model always gives the same bytes.

    Parameters
    ----------
    model : classifier, pipeline or Learner
        A fitted model.
    path : path
        File to write, by convention ``*.model``.

    Raises
    ------
    ValueError
        If the model does not belong to this library, is not fitted, or has an invalid parameter, a
        function as kernel, or an attribute or a step that model files can't hold. The message names
        it.
    OSError
        If the file can't be written. The message names the file.
    RuntimeError
        If another thread is fitting the model.
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
    if not isinstance(model, Learner) or model.state is None:
        raise ValueError(f"This {name} has learned nothing yet. Call fit or partial_fit first.")
    _save(model, path, steps)


def set_aside(save: Callable[[str], None], path: str | os.PathLike[str], error: OSError) -> None:
    """Save the model in the temporary folder, because saving it at `path` failed with `error`.

    A note that names the new file is added to `error`.
    """
    aside = None
    try:
        # Other users may read the folder. mkstemp creates a file that only its owner can read.
        descriptor, aside = tempfile.mkstemp(suffix=f"-{os.path.basename(path)}")
        os.close(descriptor)
        save(aside)
    except OSError as another:
        if aside is not None:
            with suppress(OSError):
                os.unlink(aside)
        error.add_note(f"Nor could what has been learned be saved elsewhere: {another}.")
    else:
        error.add_note(f"What has been learned is in {aside}.")


@asks
def _save(
    model: Any, path: str | os.PathLike[str], steps: list[tuple[str, Any]], run: Any = None,
    made_from: Iterable[str | os.PathLike[str]] = (),
) -> None:  # fmt: skip
    """Save a fitted model, the steps of the pipeline that ends in it, and the state of a run.

    `steps` is empty if there is no pipeline, `run` is None unless the file is a checkpoint, and
    `made_from` is as for `replacing`.
    """
    model.check_parameters()
    parameters = model.parameters()
    if isinstance(model.kernel_object, Function):
        raise ValueError(
            f"This {type(model).__name__} has a function for its kernel, which a model file can't "
            "hold: nothing in one is run. Pickle the model, or fit it with kernel='precomputed'."
        )
    others = sorted(vars(model).keys() - parameters.keys() - _KNOWN)
    if others:
        raise ValueError(
            f"{others[0]} is an attribute that a model file has no place for. Delete it, and keep "
            "it elsewhere."
        )
    from sparsemargin._version import __version__

    state = {**model.fitted.saved(), "feature_names": getattr(model, "feature_names_in_", None)}
    _names_of(state, run)
    encoder = Encoder()
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "library": __version__,
        "class": model.classifier,
        "parameters": encoder.encode_named(dict(sorted(parameters.items()))),
        "state": encoder.encode_named(state),
        "run": encoder.encode(run, "run"),
        "pipeline": None,
    }
    if steps:
        told = {"steps": pipelines.encoded(steps[:-1]), "last": steps[-1][0]}
        document["pipeline"] = encoder.encode_named(told, "pipeline.")
    with replacing(path, made_from) as file, ArchiveWriter(file) as archive:
        archive.document(MODEL_DOCUMENT, document)
        for name, array in encoder.arrays.items():
            archive.array(name, array)


def save_run(
    learner: Learner, run: dict[str, Any], path: str | os.PathLike[str],
    steps: list[tuple[str, Any]], made_from: Iterable[str | os.PathLike[str]] = (),
) -> None:  # fmt: skip
    """Save a checkpoint: the learner (the last of `steps`, if there are any), and the state `run`
    of plain values from which training is resumed. `made_from` is as for `replacing`."""
    _save(learner, path, steps, run, made_from)


def is_run(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a checkpoint, and not a finished model or anything else."""
    try:
        with _opened(path) as archive:
            return part(archive.document(MODEL_DOCUMENT), "run") is not None
    except ValueError:
        return False


def load_run(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """Return the learner and the run that `save_run` saved. The run of a finished model is None."""
    loaded = load_saved(path)
    return loaded.learner, loaded.run


def as_pipeline(path: str | os.PathLike[str], model: Any, steps: Any, trusted: bool = False) -> Any:
    from sparsemargin.text.pipeline import Pipeline

    with _naming(path):
        before = pipelines.decoded(part(steps, "steps"), model.n_features_in_, trusted=trusted)
        pipeline = Pipeline([*before, (part(steps, "last"), model)])
        pipeline._validate_names([name for name, _ in pipeline.steps])
    return pipeline


def load_learner(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """Load the learner of a classifier or pipeline, and the steps before it for texts or cells.

    The steps are None, and scikit-learn is not imported, if the file holds no pipeline.
    """
    loaded = load_saved(path)
    if loaded.steps is None:
        return loaded.learner, None
    kinds = [*pipelines.kinds_of(part(loaded.steps, "steps")), loaded.learner.classifier]
    if not kinds[0].endswith(("Vectorizer", "CellNormalizer")):
        raise ValueError(
            f"{os.fspath(path)} holds a pipeline, {' > '.join(kinds)}, which "
            "takes other rows than those of svmlight text. Ask it in Python: sparsemargin."
            f"load_model({os.fspath(path)!r}).predict(X)."
        )
    return loaded.learner, as_pipeline(path, loaded.learner, loaded.steps)[:-1]


def load_with_names(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """Load the learner of a classifier or pipeline, and the names that the steps before it give to
    its features, or None if they give none."""
    loaded = load_saved(path)
    learner, steps = loaded.learner, loaded.steps
    return learner, steps and names_out_of(as_pipeline(path, learner, steps)[:-1])


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the summary of a model in a file (see `summarise`), without scikit-learn.

    It also has ``library``, the version that wrote the file, and, for a pipeline, ``steps``, the
    types of the steps before the model.
    """
    loaded = load_saved(path)
    steps = {} if loaded.steps is None else {"steps": pipelines.kinds_of(loaded.steps["steps"])}
    return {**summarise(loaded.learner), **steps, "library": loaded.library}


def summarise(model: Any) -> dict[str, Any]:
    """Return a summary of a fitted model as a dict.

    ``n_iter`` is the number of epochs of the last call of `fit` or `partial_fit`, ``n_trials`` the
    number of trials of all calls. ``n_corrections`` is an int for two classes and for a joint
    classifier, otherwise a list with one number for each class. ``n_support``, the number of rows
    in the pool, is there for models with a kernel only.
    """
    fitted = model.fitted
    space = fitted.space
    classes, corrections = fitted.classes.tolist(), space.per_label("corrections").tolist()
    pool = {"n_support": space.n_support} if space.has_support else {}
    return {
        "class": model.classifier,
        "settings": model.parameters(),
        "classes": classes,
        "many_labels": fitted.many,
        "n_features": space.n_features,
        "n_iter": fitted.n_iter,
        "n_trials": space.trials,
        "n_corrections": corrections[0] if len(corrections) < len(classes) else corrections,
        **pool,
    }


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open the archive of a model file. Errors name the file."""
    if is_url(path):
        with fetched(os.fspath(path)) as file, _naming(path):
            yield Archive(file)
        return
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such model. {whereabouts(os.fspath(path))}")
    # Only regular files are opened, as opening a pipe might block forever.
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError(f"{path}: {_NO_MODEL}")
    with open(path, "rb") as file, _naming(path):
        if not begins_with(file.read(HEAD_BYTES), MODEL_DOCUMENT):
            raise ValueError(_NO_MODEL)
        yield Archive(file)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn exceptions, except OSError and MemoryError, into a ValueError that names the file."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        what = str(error)
        if isinstance(error, DamagedError):
            what = (
                f"This model file was cut short or has been changed: {error}. Copy it again from "
                "where it was saved, or save the model again."
            )
        elif not isinstance(error, ValueError):
            what = f"This is not what save_model writes. {type(error).__name__}: {error}"
        # A message may quote any amount of the file's content.
        raise ValueError(f"{os.fspath(path)}: {what[:_LONGEST_MESSAGE]}") from error


def _names_of(state: dict[str, Any], run: Any) -> Any:
    """Return the names of the features from a state, or None, and check their number.

    The number is not checked for a checkpoint, where features may have been added after naming.
    """
    n_features = state["space"].n_features if run is None else None
    return optional(state, "feature_names", array_of, object, (n_features,))


class SavedModel(NamedTuple):
    """Content of a model file: the learner, the version of the library that wrote the file, the
    encoded steps of a pipeline (None without one) and the state of a run (None if finished)."""

    learner: Learner
    library: str
    steps: Any
    run: Any


def load_saved(path: str | os.PathLike[str]) -> SavedModel:
    with _opened(path) as archive:
        document = archive.document(MODEL_DOCUMENT)
        _check_version(document)
        decoder = Decoder(archive)
        library, name = part(document, "library"), part(document, "class")
        require(isinstance(name, str) and name in LEARNERS, f"there is no classifier {name!r}")
        state = decoder.decode_named(part(document, "state"))
        fitted = Fitted.restored(state, LEARNERS[name])
        run = decoder.decode(part(document, "run"))
        names = _names_of(state, run)
        parameters = decoder.decode_named(part(document, "parameters"))
        steps = part(document, "pipeline")
        if steps is not None:
            steps = decoder.decode_named(steps)
            pipelines.kinds_of(part(steps, "steps"))
    try:
        learner = LEARNERS[name](**parameters)
        learner.check_parameters()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} was written by sparsemargin {library}, whose {name} takes other "
            f"parameters: {error}"
        ) from None
    learner.restore(fitted).n_features_in_ = fitted.space.n_features
    if names is not None:
        learner.feature_names_in_ = names  # type: ignore[attr-defined]
    return SavedModel(learner, library, steps, run)


def _check_version(document: Any) -> None:
    if part(document, "format") != _FORMAT:
        raise ValueError("This is not a model file of sparsemargin.")
    version = integer(document, "version", 1, np.iinfo(np.int64).max)
    if version != _VERSION:
        raise ValueError(
            f"This model file has format {version}, of sparsemargin {part(document, 'library')}; "
            f"this version reads format {_VERSION}. Update sparsemargin to load it."
        )
