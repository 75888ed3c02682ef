"""Who is at a model: one thread that learns, or any number that ask it.

Compiled loops run without Python's lock, and learning moves the arrays they read. So to learn
while others ask, or the other way round, is refused at once. So is a call from within one that
learns, by a callable kernel, say: the outer one would go on with what the inner has left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar
from weakref import ref

_Model = TypeVar("_Model")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[_Model, _Given], _Result]


class _Use:
    """The calls under way at one model."""

    __slots__ = ("asking", "learner", "lock")

    def __init__(self) -> None:
        self.lock = Lock()
        # Threads, as `get_ident` tells them; one that asks may do so from within.
        self.learner: int | None = None
        self.asking: list[int] = []


# Beside the models: no copy, pickle or file of one has any part in it. A WeakKeyDictionary would do
# the same, and make each call half a microsecond slower.
_uses: dict[ref[Any], _Use] = {}


def _use_of(model: Any) -> _Use:
    use = _uses.get(ref(model))
    return _uses.setdefault(ref(model, _uses.pop), _Use()) if use is None else use


def _forget_other_threads() -> None:
    """In a forked process there are none that would ever end their calls."""
    me = get_ident()
    for use in _uses.values():
        use.lock, use.asking = Lock(), [me] * use.asking.count(me)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def learns(method: _Method[_Model, _Given, _Result]) -> _Method[_Model, _Given, _Result]:
    """Let a method that changes what a model has learned have the model for itself; a RuntimeError
    where another thread is at the model, or this one already."""
    return _using(method, alone=True)


def asks(method: _Method[_Model, _Given, _Result]) -> _Method[_Model, _Given, _Result]:
    """Let a method read what a model has learned, beside others that do so; a RuntimeError where
    another thread learns, or this one already."""
    return _using(method, alone=False)


def _using(
    method: _Method[_Model, _Given, _Result], alone: bool
) -> _Method[_Model, _Given, _Result]:
    @wraps(method)
    def using(model: _Model, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        use, me, begun = _use_of(model), get_ident(), False
        try:
            with use.lock:
                if use.learner is not None:
                    _refuse(model, "fits", use.learner == me)
                if alone and use.asking:
                    _refuse(model, "asks", me in use.asking)
                if alone:
                    use.learner, begun = me, True
                else:
                    use.asking, begun = [*use.asking, me], True
            return method(model, *args, **kwargs)
        finally:
            if begun and alone:
                use.learner = None
            elif begun:
                with use.lock:
                    use.asking.remove(me)

    return using


def refuse_while_learning(model: Any) -> None:
    """Refuse to look at a model that another thread changes."""
    use = _uses.get(ref(model))
    if use is not None and use.learner not in (None, get_ident()):
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
