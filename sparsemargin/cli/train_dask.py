"""``sparsemargin train --dask``: learning from files where the workers of a Dask cluster are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from sparsemargin.cli.options import Option
from sparsemargin.cli.train_settings import settings_of
from sparsemargin.io.stream import Moment
from sparsemargin.models import Learner

_SECTION = "Several machines"
# What goes on where one process reads all files.
_NOT_THERE = {"init": "--init", "cache_beside": "--cache-beside", "threads": "--threads"}


def dask_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of learning on several machines."""
    options = (
        click.option(
            "--dask", cls=Option, section=_SECTION, metavar="ADDRESS",
            help="Learn on the workers of this Dask scheduler, such as tcp://host:8786: an epoch "
            "on each FILE, of which a pattern in quotes is one, read where the worker is, then a "
            "mixture of what they came to, which is written to MODEL; 5 epochs unless told. "
            "--cache is then a folder on each worker.",
        ),
        click.option(
            "--mixing", cls=Option, section=_SECTION, type=click.Choice(["uniform", "errors"]),
            help="Whether all files weigh the same in a mixture, or as much as the corrections "
            "they made.  [default: uniform]",
        ),
        click.option(
            "--resume", is_flag=True, cls=Option, section=_SECTION,
            help="Go on from the last mixture in MODEL, if there is one.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def check_on_dask(options: dict[str, Any], dask: str | None, mixing: Any, resume: bool) -> None:
    """Refuse options that don't go together.

    Raises
    ------
    click.UsageError
    """
    given = {"--mixing": mixing is not None, "--resume": resume}
    if dask is None and any(given.values()):
        name = next(name for name, is_given in given.items() if is_given)
        raise click.UsageError(f"{name} is of learning on several machines: pass --dask ADDRESS.")
    for key, name in _NOT_THERE.items():
        if dask is not None and options[key]:
            raise click.UsageError(f"{name} can't be had with --dask. Leave one of the two out.")


def learner_on_dask(
    files: tuple[str, ...], options: dict[str, Any], output: str, *, dask: str,
    mixing: str | None, resume: bool,
) -> Callable[[Callable[[Moment], None]], Learner]:  # fmt: skip
    """What learns from files on the workers, and is told whom to report to.

    Raises
    ------
    click.UsageError
        If options contradict each other.
    """
    from sparsemargin.distributed._fit import learn_distributed

    is_told = options["max_iter"] is not None
    settings = settings_of(options)
    settings["cache_dir"] = settings.pop("cache")
    del settings["n_jobs"]
    if not is_told:
        del settings["max_iter"]
    if mixing is not None:
        settings["mixing"] = mixing

    def learn(report: Callable[[Moment], None]) -> Learner:
        return learn_distributed(
            list(files), client=dask, checkpoint=output, resume=resume, report=report, **settings
        )

    return learn


def nothing_to_resume(output: str, learner: Learner) -> str:
    """What to tell of a fit that has come to its end before."""
    has_settled = learner.max_iter is None or learner.n_iter_ < learner.max_iter
    why = "The last made no correction." if has_settled else "Pass more --epochs."
    return f"{output} has made its {learner.n_iter_:g} epochs: nothing is left to resume. {why}"
