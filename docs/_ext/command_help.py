"""A directive that shows what ``sparsemargin COMMAND --help`` prints."""

from typing import Any

from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive

from sparsemargin.cli.app import main

_WIDTH = 80  # columns


class CommandHelp(Directive):
    """``.. command-help:: predict``; with no argument the help of the command line itself.
    ``.. command-help:: train --help-all`` has all options of a command whose --help has some."""

    optional_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return the help as a literal block; a command that fails is an error of the build."""
        arguments = [*self.arguments, "--help"][: max(2, len(self.arguments))]
        outcome = CliRunner().invoke(
            main, arguments, prog_name="sparsemargin", terminal_width=_WIDTH
        )
        if outcome.exit_code:
            raise self.error(f"sparsemargin {' '.join(self.arguments)}: {outcome.output}")
        block = nodes.literal_block(outcome.output, outcome.output)
        block["language"] = "text"
        return [block]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
