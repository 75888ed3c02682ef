"""Locks for models: one thread may train a model, or any number of threads may read it.

Compiled loops run without the GIL, and training reallocates the arrays they read. Training a model
while another thread reads it, or reading it during training, therefore raises an error immediately.
This includes calls from inside a training call, for example from a callable kernel, because the
outer call would resume with a state that the inner call has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar
from weakref import ref

_Model = TypeVar("_Model")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[_Model, _Given], _Result]


@dataclass(slots=True)
class _Use:
    """The running calls of one model."""

    lock: Any = field(default_factory=Lock)
    # Thread identifiers from `get_ident`. Reading calls may be nested, so `reading_threads` may
    # contain a thread several times.
    training_thread: int | None = None
    reading_threads: list[int] = field(default_factory=list)


# The running calls are stored outside the models, so that copies, pickles and files do not contain
# them. With a WeakKeyDictionary, each call would take 0.5 microseconds longer.
_uses: dict[ref[Any], _Use] = {}


def _forget_other_threads() -> None:
    """Remove the reading calls of other threads, which a forked process does not have."""
    me = get_ident()
    for use in _uses.values():
        use.lock, use.reading_threads = Lock(), [me] * use.reading_threads.count(me)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def learns(method: _Method[_Model, _Given, _Result]) -> _Method[_Model, _Given, _Result]:
    """Decorate a method that trains a model. It raises a RuntimeError if another call is running,
    in another thread or in this one."""
    return _using(method, alone=True)


def asks(method: _Method[_Model, _Given, _Result]) -> _Method[_Model, _Given, _Result]:
    """Decorate a method that reads a trained model. Several may run at the same time. It raises a
    RuntimeError if the model is being trained, by another thread or by this one."""
    return _using(method, alone=False)


def _using(
    method: _Method[_Model, _Given, _Result], alone: bool
) -> _Method[_Model, _Given, _Result]:
    @wraps(method)
    def using(model: _Model, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        use, me, begun = _uses.get(ref(model)), get_ident(), False
        if use is None:
            use = _uses.setdefault(ref(model, _uses.pop), _Use())
        try:
            with use.lock:
                if use.training_thread is not None:
                    _refuse(model, "fits", use.training_thread == me)
                if alone and use.reading_threads:
                    _refuse(model, "asks", me in use.reading_threads)
                if alone:
                    use.training_thread, begun = me, True
                else:
                    use.reading_threads, begun = [*use.reading_threads, me], True
            return method(model, *args, **kwargs)
        finally:
            if begun and alone:
                use.training_thread = None
            elif begun:
                with use.lock:
                    use.reading_threads.remove(me)

    return using


def refuse_while_learning(model: Any) -> None:
    """Raise a RuntimeError if another thread is training the model."""
    use = _uses.get(ref(model))
    if use is not None and use.training_thread not in (None, get_ident()):
        _refuse(model, "fits", False)


def _refuse(model: Any, does: str, same_thread: bool) -> NoReturn:
    name = type(model).__name__
    if same_thread:
        raise RuntimeError(
            f"This thread {does} this {name}, and what that runs, such as a callable kernel, calls "
            "it anew. Let it call another model: a copy.deepcopy made before."
        )
    raise RuntimeError(
        f"Another thread {does} this {name}. Let it finish first; to predict while learning goes "
        "on, ask a copy.deepcopy made before it began."
    )
