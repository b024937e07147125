"""`python -m bench`: measure the promises, print them as a table, keep every number in a file."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from backcast.model.pipeline import TableFormat
from bench import chunks, diff, kafka, ledger, publish, rules, run, start
from bench.lake import Lake
from bench.machine import facts
from bench.promise import QUICK, Result, Sizes

FOLDER = Path(".bench")


class Bench:
    """What the promises are measured in: a folder of its own, and Spark once one of them needs it."""

    def __init__(self, folder: Path, sizes: Sizes, formats: Sequence[TableFormat] = tuple(TableFormat)) -> None:
        self.folder, self.sizes, self.formats = folder, sizes, formats
        self._lake: Lake | None = None

    def lake(self) -> Lake:
        if self._lake is None:
            self._lake = Lake.open(self.folder)
        return self._lake

    def close(self) -> None:
        if self._lake is not None:
            self._lake.spark.stop()


Measure = Callable[[Bench], list[Result]]


def on_each_format(measure: Callable[[Lake, TableFormat, Sizes], list[Result]]) -> Measure:
    """The same promises on each format, with the formats side by side."""

    def measured(bench: Bench) -> list[Result]:
        found = [
            [replace(result, on=each.title()) for result in measure(bench.lake(), each, bench.sizes)]
            for each in bench.formats
        ]
        return [result for promise in zip(*found, strict=True) for result in promise]

    return measured


PROMISES: dict[str, Measure] = {
    "help": lambda bench: start.measure(bench.sizes),
    "ledger": lambda bench: ledger.measure(bench.folder, bench.sizes),
    "run": on_each_format(run.measure),
    "chunks": on_each_format(chunks.measure),
    "rules": on_each_format(rules.measure),
    "diff": on_each_format(diff.measure),
    "kafka": lambda bench: kafka.measure(bench.lake(), bench.sizes),
    "publish-rows": on_each_format(publish.measure_rows),
    "publish-files": on_each_format(publish.measure_files),
    "publish-others": on_each_format(publish.measure_others),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no promise was missed, 1 when one was. With --quick the numbers decide nothing."""
    options = _options(arguments)
    sizes = QUICK if options.quick else Sizes()
    folder = options.folder.resolve()
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    console = Console()
    formats = [TableFormat(each) for each in options.on or TableFormat]
    results = measure(options.only or list(PROMISES), Bench(work, sizes, formats), console)
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
    return 0 if options.quick or all(result.held or result.skipped for result in results) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=PROMISES, action="append", help="measure this promise; may be repeated")
    parser.add_argument("--on", choices=[*TableFormat], action="append", help="only this format; may be repeated")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs, measures nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where tables and bench.json go")
    return parser.parse_args(arguments)


def measure(names: Sequence[str], bench: Bench, console: Console) -> list[Result]:
    results: list[Result] = []
    try:
        for name in names:
            console.print(f"[dim]measuring {name}[/dim]")
            found = PROMISES[name](bench)
            for result in found:
                what = ", ".join(filter(None, (result.promise, result.on)))
                console.print(f"[dim]  {what}: {result.measured}, {result.verdict}[/dim]")
            results += found
    finally:
        bench.close()
    return results


def table(results: Sequence[Result]) -> Table:
    shown = Table("promise", "on", "target", "measured", "verdict", "seconds / against", title="Promises with numbers")
    for result in results:
        colour = "yellow" if result.busy or result.skipped else "green" if result.held else "red"
        verdict = f"[{colour}]{result.verdict}[/{colour}]"
        shown.add_row(result.promise, result.on, result.target, result.measured, verdict, _raw(result))
    return shown


def _raw(result: Result) -> str:
    sides = [result.numbers.get(side) for side in ("samples", "against")]
    return " / ".join(" ".join(f"{each['seconds']:.2f}" for each in side) for side in sides if side)


if __name__ == "__main__":
    sys.exit(main())
