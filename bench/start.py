"""Promise: asking for help costs a few bare starts of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result

LIMIT = 8.0


def measure(sizes: Sizes) -> list[Result]:
    command = Path(sys.executable).with_name("backcast")
    help_command = [str(command)] if command.exists() else [sys.executable, "-m", "backcast"]
    seconds = alternate(
        {
            "python -c pass": Contender(work=lambda: _run([sys.executable, "-c", "pass"])),
            "backcast --help": Contender(work=lambda: _run([*help_command, "--help"])),
        },
        rounds=sizes.starts,
        warm_up=sizes.warm_up,
    )
    return [
        ratio_result(
            "help",
            "backcast --help against python -c pass",
            LIMIT,
            seconds["backcast --help"],
            seconds["python -c pass"],
        )
    ]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
