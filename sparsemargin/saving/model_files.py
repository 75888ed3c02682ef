"""Model files, which are written atomically and loaded without running code from the file.

A model file is an npz archive with a JSON document, ``model.json``, that any program can read. Two
other formats were rejected. Pickles run code. skops looks up types by the names in the file, and
imports scikit-learn, which takes a second and 112 MB: too much for a command that only predicts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

import sparsemargin
from sparsemargin import text
from sparsemargin._engine.state import array_of, integer, optional, part, require
from sparsemargin.files import archive as archives
from sparsemargin.files.archive import MODEL_DOCUMENT, Archive, ArchiveWriter
from sparsemargin.files.atomic import replacing
from sparsemargin.files.remote import downloaded, is_url
from sparsemargin.files.sources import whereabouts
from sparsemargin.models import LEARNERS, Learner
from sparsemargin.models.fitted.in_use import asks
from sparsemargin.models.fitted.rejecting import Rejection
from sparsemargin.models.fitted.restored import restored_state
from sparsemargin.models.kernels import Function
from sparsemargin.models.pipelines import is_choosing, is_of_library, names_out_of, taken
from sparsemargin.saving import steps as pipelines
from sparsemargin.saving.values import Decoder, Encoder
from sparsemargin.saving.wrappers import (
    decoded_wrappers,
    rewrapped,
    unwrapped,
)

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

    `load_model` returns the same model, bit for bit, and training can be continued. For an
    `AutoClassifier` or a search, `best_estimator_` is saved. A `Rejector` is saved with the
    classifier or pipeline in it.

    The other steps of a pipeline may be this library's vectorizers and `CellNormalizer`, and
    scikit-learn's `CountVectorizer`, `TfidfVectorizer`, `HashingVectorizer`, `TfidfTransformer`,
    `StandardScaler`, `MaxAbsScaler`, `Normalizer`, `OneHotEncoder`, `OrdinalEncoder`,
    `SimpleImputer`, `SelectKBest`, `TruncatedSVD`, and a `ColumnTransformer`, `FeatureUnion` or
    `Pipeline` of these. Their parameters must not be functions, except `score_func`. The commands
    that predict read a pipeline only if its first step takes texts or cells.

    Zero weights take little space. The file is written atomically: after an error, the old file is
    still there. The same model always gives the same bytes.

    Parameters
    ----------
    model : classifier, pipeline, estimator of a whole task, Rejector or Learner
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
    model, wrappers = unwrapped(model)
    if not _is_ours(model):
        steps = pipelines.steps_of(model)
        if steps and unwrapped(steps[-1][1])[1]:
            raise ValueError(
                f"The pipeline ends in a {type(steps[-1][1]).__name__}, which a model file holds "
                "without steps before it. Save pipeline[-1], or save the whole pipeline with "
                "joblib.dump."
            )
        model = taken(steps[-1][1]) if steps else model
    name = type(model).__name__
    if not _is_ours(model):
        raise ValueError(
            f"A model file holds a classifier of sparsemargin, got {type(model).__module__}.{name}."
            " For a CalibratedClassifierCV, save its classifier fitted to all rows, and calibrate "
            "the loaded model in a FrozenEstimator. Or save the whole object with joblib.dump or "
            "skops."
        )
    if not isinstance(model, Learner) or model.state is None:
        raise ValueError(f"This {name} is not fitted. Call fit or partial_fit first.")
    write_model(model, path, steps, wrappers=wrappers)


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
        error.add_note(f"The model could not be saved elsewhere either: {another}.")
    else:
        error.add_note(f"The model was saved in {aside} instead.")


@asks
def write_model(
    model: Any, path: str | os.PathLike[str], steps: list[tuple[str, Any]], run: Any = None,
    made_from: Iterable[str | os.PathLike[str]] = (), wrappers: Iterable[dict[str, Any]] = (),
) -> None:  # fmt: skip
    """Save a fitted model and the steps of the pipeline that ends in it (empty without a pipeline).

    `wrappers` are the wrappers around the model, as `unwrapped` returns them. A checkpoint also has
    `run`, the plain values from which training is resumed. `made_from` is as for `replacing`.
    """
    model.fitted.require_all("saved")
    model.check_parameters()
    parameters = model.parameters()
    if not model.is_linear and isinstance(model.kernel_object, Function):
        raise ValueError(
            f"The kernel of this {type(model).__name__} is a function. A model file can't hold "
            "functions, because loading one never runs code from it. Pickle the model, or fit it "
            "with kernel='precomputed'."
        )
    others = sorted(vars(model).keys() - parameters.keys() - _KNOWN)
    if others:
        raise ValueError(
            f"The model has an attribute {others[0]!r}, which a model file can't hold. Delete it "
            "before saving."
        )
    state = {**model.fitted.saved(), "feature_names": getattr(model, "feature_names_in_", None)}
    _names_of(state, run)
    encoder = Encoder()
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "library": sparsemargin.__version__,
        "class": model.classifier,
        "parameters": encoder.encode_named(dict(sorted(parameters.items()))),
        "state": encoder.encode_named(state),
        "run": encoder.encode(run, "run"),
        "pipeline": None,
    }
    around = [encoder.encode_named(each, f"wrappers.{i}.") for i, each in enumerate(wrappers)]
    if around:
        document["wrappers"] = around
    if steps:
        pipeline = {"steps": pipelines.encoded(steps[:-1]), "last": steps[-1][0]}
        document["pipeline"] = encoder.encode_named(pipeline, "pipeline.")
    with replacing(path, made_from) as file, ArchiveWriter(file) as archive:
        archive.document(MODEL_DOCUMENT, document)
        for name, array in encoder.arrays.items():
            archive.array(name, array)


def is_run(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a checkpoint, and not a finished model or anything else."""
    try:
        with _opened(path) as archive:
            return part(archive.document(MODEL_DOCUMENT), "run") is not None
    except ValueError:
        return False


def as_pipeline(path: str | os.PathLike[str], model: Any, steps: Any, trusted: bool = False) -> Any:
    """Return the pipeline of the encoded steps and the classifier in a file."""
    with _naming(path):
        before = pipelines.decoded(part(steps, "steps"), model.n_features_in_, trusted=trusted)
        pipeline = text.pipeline.Pipeline([*before, (part(steps, "last"), model)])
        pipeline._validate_names([name for name, _ in pipeline.steps])
    return pipeline


def as_wrapped(
    path: str | os.PathLike[str], model: Any, wrappers: list[dict[str, Any]],
    classes: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Return the classifier or pipeline in a file in its wrappers, whose classes are given."""
    with _naming(path):
        return rewrapped(model, wrappers, classes)


def load_learner(
    path: str | os.PathLike[str],
) -> tuple[Learner, Any, dict[str, dict[str, Any]]]:
    """Load the learner of a classifier or pipeline, the steps before it for texts or cells, and,
    without checks, the values of the wrappers by their classes.

    The steps are None, and scikit-learn is not imported, if the file holds no pipeline.
    """
    loaded = load_saved(path)
    wrappers = {each["class"]: each["values"] for each in loaded.wrappers}
    if loaded.steps is None:
        return loaded.learner, None, wrappers
    kinds = [*pipelines.kinds_of(part(loaded.steps, "steps")), loaded.learner.classifier]
    if not kinds[0].endswith(("Vectorizer", "CellNormalizer")):
        raise ValueError(
            f"{os.fspath(path)} holds a pipeline, {' > '.join(kinds)}, which does not take "
            "svmlight text. Use it in Python: "
            f"sparsemargin.load_model({os.fspath(path)!r}).predict(X)."
        )
    return loaded.learner, as_pipeline(path, loaded.learner, loaded.steps)[:-1], wrappers


def rejection_of(
    path: str | os.PathLike[str], learner: Learner, wrappers: Mapping[str, Any]
) -> Rejection | None:
    """Return the values of the Rejector among the wrappers that `load_learner` returns, or None if
    there is none."""
    values = wrappers.get("Rejector")
    if values is None:
        return None
    with _naming(path):
        require(not learner.fitted.many, "a Rejector has no classifier")
        return Rejection.restored(values, learner.fitted.classes)


def load_with_names(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """Load the learner of a classifier or pipeline, and the names that the steps before it give to
    its features, or None if they give none."""
    loaded = load_saved(path)
    learner, steps = loaded.learner, loaded.steps
    return learner, steps and names_out_of(as_pipeline(path, learner, steps)[:-1])


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the summary of a model in a file (see `summarise`), without scikit-learn.

    It also has ``library``, the version that wrote the file, and, for a pipeline, ``steps``, the
    types of the steps before the model. ``wrappers`` are the types of the estimators around it,
    the outermost first, if there are any.
    """
    loaded = load_saved(path)
    steps = {} if loaded.steps is None else {"steps": pipelines.kinds_of(loaded.steps["steps"])}
    wrappers = [each["class"] for each in loaded.wrappers]
    around = {"wrappers": wrappers} if wrappers else {}
    return {**summarise(loaded.learner), **steps, **around, "library": loaded.library}


def summarise(model: Any) -> dict[str, Any]:
    """Return a summary of a fitted model as a dict.

    ``n_iter`` is the number of epochs of the last call of `fit` or `partial_fit`, ``n_trials`` the
    number of trials of all calls. ``n_corrections`` is an int for two classes and for a joint
    classifier, otherwise a list with one number for each class. Only models with a kernel have
    ``n_support``, the number of rows in the pool.
    """
    fitted = model.fitted
    space = fitted.space
    classes, corrections = fitted.classes.tolist(), space.per_vector("corrections").tolist()
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
        with downloaded(os.fspath(path)) as file, _naming(path):
            yield Archive(file)
        return
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such model. {whereabouts(os.fspath(path))}")
    # Only regular files are opened, as opening a pipe might block forever.
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError(f"{path}: {_NO_MODEL}")
    with open(path, "rb") as file, _naming(path):
        if not archives.begins_with(file.read(archives.HEAD_BYTES), MODEL_DOCUMENT):
            raise ValueError(_NO_MODEL)
        yield Archive(file)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn exceptions into a ValueError that names the file, except an OSError, and a MemoryError,
    which gets a note."""
    try:
        yield
    except OSError:
        raise
    except MemoryError as error:
        error.add_note(f"This happened while {os.fspath(path)} was loaded.")
        raise
    except Exception as error:
        what = str(error)
        if isinstance(error, archives.DamagedError):
            what = (
                f"This model file was cut short or has been changed: {error}. Copy it again, or "
                "save the model again."
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
    encoded steps of a pipeline (None without one), the state of a run (None if finished) and the
    wrappers, the outermost first."""

    learner: Learner
    library: str
    steps: Any
    run: Any
    wrappers: list[dict[str, Any]]


def load_saved(path: str | os.PathLike[str]) -> SavedModel:
    with _opened(path) as archive:
        document = archive.document(MODEL_DOCUMENT)
        _check_version(document)
        decoder = Decoder(archive)
        library, name = part(document, "library"), part(document, "class")
        require(isinstance(name, str) and name in LEARNERS, f"there is no classifier {name!r}")
        state = decoder.decode_named(part(document, "state"))
        fitted = restored_state(state, LEARNERS[name])
        run = decoder.decode(part(document, "run"))
        names = _names_of(state, run)
        parameters = decoder.decode_named(part(document, "parameters"))
        steps = part(document, "pipeline")
        if steps is not None:
            steps = decoder.decode_named(steps)
            pipelines.kinds_of(part(steps, "steps"))
        wrappers = decoded_wrappers(document, decoder)
    try:
        learner = LEARNERS[name](**parameters)
        learner.check_parameters()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)} was written by sparsemargin {library}. Its parameters are not "
            f"valid for this version's {name}: {error}"
        ) from None
    learner.restore(fitted).n_features_in_ = fitted.space.n_features
    if names is not None:
        learner.feature_names_in_ = names  # type: ignore[attr-defined]
    return SavedModel(learner, library, steps, run, wrappers)


def _check_version(document: Any) -> None:
    if part(document, "format") != _FORMAT:
        raise ValueError("This is not a model file of sparsemargin.")
    version = integer(document, "version", 1, np.iinfo(np.int64).max)
    if version != _VERSION:
        raise ValueError(
            f"This model file has format {version}, of sparsemargin {part(document, 'library')}; "
            f"this version reads format {_VERSION}. Update sparsemargin to load it."
        )
