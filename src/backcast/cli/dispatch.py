"""From arguments to a command's exit code: parsing, and the one place where errors become text."""

from __future__ import annotations

import os
import sys
import traceback
from difflib import get_close_matches

from cyclopts import App, CycloptsError, Group, Parameter

from backcast import __version__
from backcast.cli.catalogue import FAMILIES, SUMMARIES
from backcast.cli.screen import Screen
from backcast.errors import BackcastError, InvalidRequest

INTERRUPTED = 130
_BROKEN_PIPE = 141
_CLOSE = 0.7
"""At 0.6, difflib's own, `bogus` was taken for `logs`."""
_FLAGS = frozenset({"--json", "--no-color", "--verbose"})
_VALUED = frozenset({"--project", "--profile"})


def dispatch(arguments: list[str]) -> int:
    """Run the command that the arguments name. Never raises for an error: it is printed and becomes an exit code."""
    screen = Screen(json="--json" in arguments, no_color="--no-color" in arguments, verbose="--verbose" in arguments)
    try:
        code = parser()(
            named(hoisted(arguments)),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
            console=screen.out,
        )
        screen.flush()
        return int(code or 0)
    except BrokenPipeError:
        # What reads our output has gone; the interpreter must not complain about the rest of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except CycloptsError as error:
        return screen.fail(usage(error))
    except BackcastError as error:
        return screen.fail(error)
    except KeyboardInterrupt as signal:
        return screen.stop(getattr(signal, "exit_code", INTERRUPTED), getattr(signal, "hint", ""))
    except Exception as error:  # noqa: BLE001 - the last resort: a sentence instead of a traceback
        return screen.fail(unexpected(error), trace=traceback.format_exc())


def parser() -> App:
    """The application with its commands by import path: only the one that is called gets loaded."""
    app = App(
        name="backcast",
        version=__version__,
        default_parameter=Parameter(negative=(), show_default=False),
        group_parameters=Group("Options", sort_key=1),
        help_format="plaintext",
        # An interrupt must reach the command: it has a child process to stop.
        suppress_keyboard_interrupt=False,
    )
    families = {name: App(name=name, help=summary) for name, summary in FAMILIES.items()}
    for family in families.values():
        app.command(family)
    for name, summary in SUMMARIES.items():
        first, _, second = name.partition(" ")
        module = name.replace(" ", "_")
        parent = families[first] if second else app
        parent.command(f"backcast.cli.commands.{module}:{_function(module)}", name=second or first, help=summary)
    return app


def hoisted(arguments: list[str]) -> list[str]:
    """The arguments with common options in front of the command moved behind it; `help X` as `X --help`."""
    front: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest[0].partition("=")[0]
        if option not in _FLAGS | _VALUED:
            break
        takes = 2 if option in _VALUED and "=" not in rest[0] else 1
        front += rest[:takes]
        rest = rest[takes:]
    if rest[:1] == ["help"] and len(rest) > 1:
        rest = [*rest[1 : 1 + _words(rest[1:])], "--help"]
    words = _words(rest)
    return [*rest[:words], *front, *rest[words:]] if rest else []


def named(arguments: list[str]) -> list[str]:
    """The arguments, once they begin with a command that exists."""
    first = " ".join(arguments[: _words(arguments)])
    if first in SUMMARIES or (first in FAMILIES and {"--help", "-h"} & set(arguments)):
        return arguments
    if first in FAMILIES:
        raise InvalidRequest(f"which command of `backcast {first}`?", hint=f"backcast {first} --help")
    close = get_close_matches(first, SUMMARIES, n=1, cutoff=_CLOSE)
    what = "no option before the command" if first.startswith("-") else "no command"
    hint = f"did you mean `backcast {close[0]}`?" if close else "backcast --help"
    raise InvalidRequest(f"{what} is called {first!r}" if first else "which command?", hint=hint)


def usage(error: CycloptsError) -> InvalidRequest:
    """A parser's complaint as one of ours, with the command whose help explains more."""
    known = {word for name in SUMMARIES for word in name.split()}
    chain = [each for each in (error.command_chain or ()) if each in known]
    message = " ".join(str(error).split())
    return InvalidRequest(message, hint=f"backcast {' '.join([*chain, '--help'])}")


def unexpected(error: Exception) -> BackcastError:
    message = f"unexpected {type(error).__name__}: {error}"
    return BackcastError(message, hint="this is a bug in backcast; --verbose shows where")


def _function(name: str) -> str:
    """Commands whose name is a word of Python's own have a trailing underscore on their function."""
    return f"{name}_" if name == "list" else name


def _words(arguments: list[str]) -> int:
    """How many of the first words name the command."""
    first, second = [*arguments[:2], "", ""][:2]
    return 2 if first in FAMILIES and second and not second.startswith("-") else 1
