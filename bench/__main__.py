"""`python -m bench`: measure the promises, print them as a table, keep every number in a file."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import ledger, publish, run, start
from bench.lake import Lake
from bench.machine import facts
from bench.promise import QUICK, Result, Sizes

FOLDER = Path(".bench")


class Bench:
    """What the promises are measured in: a folder of its own, and Spark once one of them needs it."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder, self.sizes = folder, sizes
        self._lake: Lake | None = None

    def lake(self) -> Lake:
        if self._lake is None:
            self._lake = Lake.open(self.folder)
        return self._lake

    def close(self) -> None:
        if self._lake is not None:
            self._lake.spark.stop()


PROMISES: dict[str, Callable[[Bench], list[Result]]] = {
    "help": lambda bench: start.measure(bench.sizes),
    "ledger": lambda bench: ledger.measure(bench.folder, bench.sizes),
    "run": lambda bench: run.measure(bench.lake(), bench.sizes),
    "publish-rows": lambda bench: publish.measure_rows(bench.lake(), bench.sizes),
    "publish-files": lambda bench: publish.measure_files(bench.lake(), bench.sizes),
    "publish-others": lambda bench: publish.measure_others(bench.lake(), bench.sizes),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise held, 1 when one was missed. With --quick the numbers decide nothing."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=PROMISES, action="append", help="measure this promise; may be repeated")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, measures nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where tables and bench.json go")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else Sizes()
    folder = options.folder.resolve()
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    console = Console()
    results = measure(options.only or list(PROMISES), Bench(work, sizes), console)
    shutil.rmtree(work, ignore_errors=True)
    document = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": facts(),
        "results": [result.document() for result in results],
    }
    (folder / "bench.json").write_text(json.dumps(document, indent=2) + "\n")
    console.print(table(results))
    console.print(f"every number: {options.folder / 'bench.json'}")
    return 0 if options.quick or all(result.held for result in results) else 1


def measure(names: Sequence[str], bench: Bench, console: Console) -> list[Result]:
    results: list[Result] = []
    try:
        for name in names:
            console.print(f"[dim]measuring {name}[/dim]")
            results += PROMISES[name](bench)
    finally:
        bench.close()
    return results


def table(results: Sequence[Result]) -> Table:
    shown = Table("promise", "target", "measured", "verdict", "seconds / against", title="Promises with numbers")
    for result in results:
        colour = "yellow" if result.busy else "green" if result.held else "red"
        shown.add_row(
            result.promise, result.target, result.measured, f"[{colour}]{result.verdict}[/{colour}]", _raw(result)
        )
    return shown


def _raw(result: Result) -> str:
    sides = [result.numbers.get(side) for side in ("samples", "against")]
    return " / ".join(" ".join(f"{each['seconds']:.2f}" for each in side) for side in sides if side)


if __name__ == "__main__":
    sys.exit(main())
