"""`doctor` for one project: what works, what does not, what to do. The machine itself is the command line's part."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from backcast.errors import BackcastError
from backcast.model.report import Probe
from backcast.model.words import many

if TYPE_CHECKING:
    from backcast.project.wiring import Wiring

_LOW_DISK = 1024**3


def examine(wiring: Wiring) -> list[Probe]:
    """Every probe, in the order in which one would repair things. Changes nothing but the store's schema."""
    probes = list(_project_probes(wiring))
    if all(probe.ok for probe in probes):
        probes += _spark_probes(wiring)
    else:
        remedy = "correct the lines above, then run `backcast doctor` again"
        probes.append(Probe(name="spark", ok=False, detail="not tried", remedy=remedy))
    return probes


def _project_probes(wiring: Wiring) -> Iterator[Probe]:
    from backcast.project.session import session_settings

    project = wiring.project
    yield _tried(
        "settings", lambda: f"{many(len(session_settings(project).catalogs), 'catalog')}, every variable is set"
    )
    for name, catalog in project.config.catalogs.items():
        if catalog.type == "hadoop":
            detail = "type hadoop: two writers can overwrite each other's commits on most storage"
            yield Probe(name=f"catalog {name}", ok=True, detail=detail, remedy="use jdbc, rest or hive in production")
    yield _tried("store", lambda: _store(wiring))
    for name in project.config.sources:
        yield _tried(f"source {name}", partial(_source, wiring, name))
    yield _disk(wiring)
    yield _memory(wiring)


def _store(wiring: Wiring) -> str:
    from backcast.project.no_runs import NoRuns
    from backcast.project.store_address import store_url
    from backcast.store import place_of

    place, reader = place_of(store_url(wiring.project)), wiring.reader()
    if isinstance(reader, NoRuns):
        return f"{place} will be made by the first plan"
    return f"{place}: {many(len(reader.runs(limit=1000)), 'run')}"


def _source(wiring: Wiring, name: str) -> str:
    """Whether brokers answer and know the topic, and what retention says."""
    from backcast.sources.kafka.topic import KafkaTopic

    source = wiring.project.log_source(name)
    facts = KafkaTopic(wiring.project.kafka_access(name), source.topic, source.isolation).facts()
    offsets = sum(each.log_end - each.log_start for each in facts.partitions)
    kept = "without limit" if facts.retention_ms is None else f"{facts.retention_ms / 86_400_000:g} days"
    return f"topic {facts.topic}: {many(offsets, 'offset')} of {many(len(facts.partitions), 'partition')}, kept {kept}"


def _disk(wiring: Wiring) -> Probe:
    folder = wiring.project.root
    free = shutil.disk_usage(folder).free
    ok = free >= _LOW_DISK and os.access(folder, os.W_OK)
    detail = f"{free / 1024**3:.1f} GiB free at {folder}"
    return Probe(name="disk", ok=ok, detail=detail, remedy="" if ok else "make room, and let this user write there")


def _memory(wiring: Wiring) -> Probe:
    from backcast.spark.settings import default_driver_gib, machine_memory

    asked = wiring.project.config.spark.driver_memory
    machine = machine_memory()
    detail = f"driver memory {asked or f'{default_driver_gib()}g'} of {machine / 1024**3:.0f} GiB"
    ok = asked is None or _bytes(asked) < machine
    return Probe(name="memory", ok=ok, detail=detail, remedy="" if ok else "lower spark.driver_memory")


def _bytes(memory: str) -> int:
    return int(memory[:-1]) << 10 * ("kmgt".index(memory[-1]) + 1)


def _pipeline(wiring: Wiring, name: str) -> str:
    code = wiring.identity(name)
    dirty = f", {many(len(code.git_dirty), 'file')} not committed" if code.git_dirty else ""
    return f"{code.transform} version {code.version}, {many(len(code.files), 'project file')}{dirty}"


def _spark_probes(wiring: Wiring) -> Iterator[Probe]:
    started = _tried("spark", lambda: f"{wiring.spark().version} on {wiring.spark().sparkContext.master}")
    yield started
    if not started.ok:
        return
    # After Spark: modules may define functions that need a session.
    for name in wiring.project.config.pipelines:
        yield _tried(f"pipeline {name}", partial(_pipeline, wiring, name))
    for name in wiring.project.config.catalogs:
        yield _tried(f"catalog {name}", partial(_catalog, wiring, name))
    for name, source in wiring.project.config.sources.items():
        if source.archive is not None:
            yield _tried(f"archive of {name}", partial(_archive, wiring, name))
    for name in wiring.project.config.datasets:
        yield _tried(f"dataset {name}", partial(_dataset, wiring, name))


def _catalog(wiring: Wiring, name: str) -> str:
    from backcast.spark.gateway import jvm_errors

    with jvm_errors(f"asking catalog {name} for its namespaces"):
        return f"answers, {many(wiring.spark().sql(f'SHOW NAMESPACES IN {name}').count(), 'namespace')}"


def _archive(wiring: Wiring, name: str) -> str:
    """Whether it has the columns, and how much is archived."""
    whole = wiring.log_input(name, wiring.project.log_source(name)).whole()
    if whole.pin is None:
        return f"will be made by `backcast archive {name}`"
    offsets = sum(each.span for each in whole.held.values())
    return f"{whole.pin.place}: {many(offsets, 'offset')} of {many(len(whole.held), 'partition')}"


def _dataset(wiring: Wiring, name: str) -> str:
    facts, table = wiring.source(name).facts(), wiring.project.relation(name).table
    columns = {column.name.lower() for column in facts.identity.columns}
    config = wiring.project.config.datasets[name]
    declared = [*config.key, *filter(None, [config.version])]
    declared += [each.column for each in (config.time, config.partition) if each is not None]
    lacking = sorted({each for each in declared if each.lower() not in columns})
    if lacking:
        raise BackcastError(
            f"{table} has no column {', '.join(lacking)}", hint=f"correct datasets.{name} in backcast.yaml"
        )
    return f"{table}, {'no data yet' if facts.version is None else f'version {facts.version}'}"


def _tried(name: str, probe: Callable[[], str]) -> Probe:
    try:
        return Probe(name=name, ok=True, detail=probe())
    except BackcastError as error:
        return Probe(name=name, ok=False, detail=error.message, remedy=error.hint)
