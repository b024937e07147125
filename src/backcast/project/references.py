"""Names in `backcast.yaml` that must lead somewhere.

Judged from the text alone, so that a mistake elsewhere in the file does not hide them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backcast.project.archives import PREFIX
from backcast.project.problems import KeyPath, Problem, suggestion
from backcast.project.yaml_lines import Tree

_Found = Iterator[tuple[KeyPath, str]]


def reference_problems(tree: Tree, wrong: set[KeyPath]) -> list[Problem]:
    """Names that lead nowhere, and inputs and outputs that need a time column and have none.

    `wrong` are keys about which something is known already: what may only follow from that is not told again.
    """
    datasets = {
        name: {"time": "unknown", **_keys(each)} if any(path[:2] == ("datasets", name) for path in wrong) else each
        for name, each in _keys(tree.mapping.get("datasets")).items()
    }
    found = (each for each in _found(tree.mapping, datasets) if not any(_touch(each[0], path) for path in wrong))
    return [Problem(tree.place(path), path, text) for path, text in found]


def _touch(one: KeyPath, other: KeyPath) -> bool:
    shorter = min(len(one), len(other))
    return shorter > 0 and one[:shorter] == other[:shorter]


def _found(project: Mapping[str, Any], datasets: Mapping[str, Any]) -> _Found:
    catalogs = _keys(project.get("catalogs"))
    for name, dataset in datasets.items():
        table = _keys(dataset).get("table")
        catalog = table.partition(".")[0] if isinstance(table, str) else None
        if catalog is not None and catalog not in catalogs:
            yield ("datasets", name, "table"), f"no catalog is called {catalog!r}{suggestion(catalog, catalogs)}"
    for name, declared in catalogs.items():
        if _keys(declared).get("type") == "delta" and name != "spark_catalog":
            yield ("catalogs", name, "type"), "a catalog of type delta is Spark's own one: call it spark_catalog"
    sources = _keys(project.get("sources"))
    for name, source in sources.items():
        if name in datasets:
            yield ("sources", name), f"a dataset is called {name!r} too: pipelines could not tell them apart"
        table = _keys(_keys(source).get("archive")).get("table")
        catalog = table.partition(".")[0] if isinstance(table, str) else None
        if catalog is not None and catalog not in catalogs:
            here: KeyPath = ("sources", name, "archive", "table")
            yield here, f"no catalog is called {catalog!r}{suggestion(catalog, catalogs)}"
    for section in ("datasets", "pipelines"):
        for name in _keys(project.get(section)):
            if _keys(sources.get(name.removeprefix(PREFIX))).get("archive") and name.startswith(PREFIX):
                yield (section, name), f"{name!r} is the archive of a source: call it otherwise"
    yield from _rules(project, datasets)
    yield from _streams(project)
    for name, pipeline in _keys(project.get("pipelines")).items():
        yield from _pipeline(name, _keys(pipeline), datasets, sources)


def _pipeline(
    name: str, pipeline: Mapping[str, Any], datasets: Mapping[str, Any], sources: Mapping[str, Any]
) -> _Found:
    here: KeyPath = ("pipelines", name)
    output = pipeline.get("output")
    if isinstance(output, str):
        if output not in datasets:
            yield (*here, "output"), f"no dataset is called {output!r}{suggestion(output, datasets)}"
        elif not _has_time(datasets[output]):
            yield (*here, "output"), f"dataset {output!r} has no time column, so it cannot be restated"
    for key, given in _keys(pipeline.get("inputs")).items():
        each = {"dataset": given} if isinstance(given, str) else _keys(given)
        dataset, path = each.get("dataset"), (*here, "inputs", key)
        if not isinstance(dataset, str):
            continue
        if dataset in sources:
            if each.get("window", "output") == "all":
                yield path, f"source {dataset!r} is a log: it is read by window, never whole"
            for word in sorted({"version", "as_of", "semantics"} & each.keys()):
                yield (*path, word), f"source {dataset!r} is a log: it has no versions"
        elif dataset not in datasets:
            known = {**datasets, **sources}
            yield path, f"no dataset or source is called {dataset!r}{suggestion(dataset, known)}"
        elif each.get("window", "output") == "output" and not _has_time(datasets[dataset]):
            yield path, f"dataset {dataset!r} has no time column: write {{dataset: {dataset}, window: all}}"


def _streams(project: Mapping[str, Any]) -> _Found:
    """Pipelines that streams refer to."""
    pipelines = _keys(project.get("pipelines"))
    for name, stream in _keys(project.get("streams")).items():
        pipeline = _keys(stream).get("pipeline")
        if isinstance(pipeline, str) and pipeline not in pipelines:
            yield ("streams", name, "pipeline"), f"no pipeline is called {pipeline!r}{suggestion(pipeline, pipelines)}"


def _rules(project: Mapping[str, Any], datasets: Mapping[str, Any]) -> _Found:
    """Datasets that rules refer to."""
    for section in ("datasets", "pipelines"):
        for name, declared in _keys(project.get(section)).items():
            rules = _keys(declared).get("rules")
            for number, rule in enumerate(rules if isinstance(rules, list) else ()):
                dataset = _keys(_keys(rule).get("references")).get("dataset")
                if isinstance(dataset, str) and dataset not in datasets:
                    path = (section, name, "rules", number, "references", "dataset")
                    yield path, f"no dataset is called {dataset!r}{suggestion(dataset, datasets)}"


def _has_time(dataset: Any) -> bool:
    return _keys(dataset).get("time") is not None


def _keys(value: Any) -> Mapping[str, Any]:
    """The value when it has keys; what has none is a mistake of its own."""
    return value if isinstance(value, dict) else {}
