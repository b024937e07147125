"""What the documents say exists: commands and options, links, keys, codes, fault points, files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest

from backcast.cli.catalogue import SUMMARIES
from backcast.cli.dispatch import dispatch, hoisted, named, parser
from backcast.faults import ALL_POINTS
from backcast.project.schema import ProjectConfig
from tests.docs import errors_page
from tests.docs.pages import PAGES, ROOT, Typed, anchors_of, links_of, name_of, typed_on

DOCS = ROOT / "docs"
TYPED = [each for page in PAGES for each in typed_on(page, "console", "text") if each.command.startswith("backcast ")]


def parsed(typed: Typed) -> None:
    """Raises when the command or one of its options does not exist."""
    arguments = shlex.split(typed.command)[1:]
    parser().parse_args(named(hoisted(arguments)), exit_on_error=False, print_error=False)


@pytest.mark.parametrize("typed", TYPED, ids=str)
def test_every_command_that_is_shown_can_be_typed(typed: Typed) -> None:
    parsed(typed)


SCENARIOS = (DOCS / "scenarios.md").read_text()
ROWS = re.findall(r"^\| [^|]+ \| `(backcast [^`]+)` \| ", SCENARIOS, re.MULTILINE)


@pytest.mark.parametrize("command", ROWS)
def test_every_scenario_has_a_command_that_can_be_typed(command: str) -> None:
    parsed(Typed("docs/scenarios.md", 1, command, ()))


def test_a_scenario_without_a_command_would_be_found() -> None:
    told = SCENARIOS.partition("## Where each")[0].splitlines()
    rows = [line for line in told if line.startswith("| ") and not re.match(r"\| (You|What) ", line)]
    assert len(rows) == len(ROWS) > 40


def test_every_page_with_a_console_block_is_typed_and_every_runbook_is_one_of_them_and_on_both_lists() -> None:
    transcripts = (ROOT / "tests/docs/test_transcripts.py").read_text()
    typed = {page.stem for page in PAGES if typed_on(page, "console")}
    assert [name for name in sorted(typed) if not re.search(rf'"{name}(\.md)?"', transcripts)] == []
    names = {path.stem for path in (DOCS / "runbooks").glob("*.md")}
    assert names - typed == set()
    for page in (DOCS / "index.md", DOCS / "scenarios.md"):
        assert [name for name in sorted(names) if f"runbooks/{name}.md" not in links_of(page)] == [], name_of(page)


def test_a_command_that_does_not_exist_would_be_found() -> None:
    with pytest.raises(Exception, match="--nowhere"):
        parsed(Typed("none", 1, "backcast plan daily --on 2026-01-05 --nowhere", ()))


def test_every_command_has_a_page_of_its_own_that_shows_it() -> None:
    for command in SUMMARIES:
        family = command.split()[0]
        page = DOCS / "commands" / f"{family}.md"
        text = page.read_text()
        assert text.startswith(f"# backcast {family}\n")
        assert "never" in text or command == "list", f"{page}: what does it never do?"
        assert "Exit codes" in text
        assert any(each.command.startswith(f"backcast {command}") for each in typed_on(page, "console", "text"))


def test_the_page_of_a_command_names_each_of_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    common = (DOCS / "commands" / "README.md").read_text()
    for command in SUMMARIES:
        also = "plan" if command == "backfill" else command
        pages = [DOCS / "commands" / f"{name.split()[0]}.md" for name in (command, also)]
        text = "".join(page.read_text() for page in pages) + common
        assert dispatch([*command.split(), "--help"]) == 0
        options = set(re.findall(r"(?<=│ )--[a-z-]+", capsys.readouterr().out))
        assert {"--json", "--project"} <= options
        assert [option for option in sorted(options) if option not in text] == [], command


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links_of(page):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors_of(there), f"{name_of(page)} links to {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        local = [target.partition("#")[0] for target in links_of(page) if "://" not in target]
        waiting += [(page.parent / path).resolve() for path in local if path.endswith(".md")]
    assert {name_of(page) for page in PAGES} - {name_of(page) for page in reached} == set()


def test_every_key_of_the_configuration_is_explained() -> None:
    text = (DOCS / "configuration.md").read_text()
    keys = config_keys(ProjectConfig, "")
    assert "pipelines.NAME.publish.undo_window" in keys
    assert [key for key in keys if f"`{elsewhere(key)}`" not in text] == []


def elsewhere(key: str) -> str:
    """Where a key is explained that the page says has the same keys as another."""
    for kept in ("datasets.NAME.rules", "datasets.NAME.gates", "pipelines.NAME.rules", "pipelines.NAME.gates"):
        if key.startswith(f"{kept}."):
            # On a page of its own; tests/unit/test_rule_schema.py sees that every kind has an example there.
            return kept
    for here, there in (("sources.NAME.key.", "sources.NAME.value."), ("sources.NAME.time.", "datasets.NAME.time.")):
        if key.startswith(here):
            return there + key.removeprefix(here)
    return key


def config_keys(model: Any, prefix: str) -> list[str]:
    """Every key below the model, as the page writes it."""
    found = []
    for name, field in model.model_fields.items():
        found.append(prefix + name)
        for each in nested(field.annotation):
            own = {"inputs": "INPUT"}.get(name, "NAME") if is_mapping(field.annotation) else ""
            found += config_keys(each, f"{prefix}{name}.{own}{'.' if own else ''}")
    return found


def nested(annotation: Any) -> list[Any]:
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [found for each in get_args(annotation) for found in nested(each)]


def is_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is dict or any(is_mapping(each) for each in get_args(annotation))


def test_every_error_code_is_listed_and_the_list_is_made_from_the_code() -> None:
    assert errors_page.PAGE.read_text() == errors_page.page(), "run: python -m tests.docs.errors_page"


def test_every_point_at_which_a_process_may_die_has_an_answer() -> None:
    text = (DOCS / "what-if.md").read_text()
    families = (
        "plan|run|stage|chunk|validate|publish|restage|undo|cancel|gc|replay|stream|catch-up|full-replay|backfill"
    )
    known = set(re.findall(rf"`((?:{families})\.(?:before|after)-[a-z-]+)`", text))
    assert known == set(ALL_POINTS)


def test_every_finding_of_a_plan_is_explained() -> None:
    text = (DOCS / "understanding-output.md").read_text()
    package = ROOT / "src" / "backcast"
    places = [*package.glob("plan/*.py"), *package.glob("targets/*/findings.py"), package / "project/request_check.py"]
    sources = "".join(path.read_text() for path in places)
    families = "target|scope|input|code|schema|policy|overlap|request|budget|capacity|replay|stream"
    codes = set(re.findall(rf'"((?:{families})\.[a-z0-9-]+)"', sources))
    assert len(codes) > 20
    assert sorted(code for code in codes if f"`{code}`" not in text) == []
    shown = set(re.findall(rf"`((?:{families})\.[a-z0-9-]+)`", text))
    assert sorted(shown - codes) == []


def test_the_code_map_names_every_package_and_every_test_that_is_mentioned_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [path.name for path in (ROOT / "src" / "backcast").iterdir() if (path / "__init__.py").exists()]
    assert [name for name in packages if f"{name}/" not in text] == []
    for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text + SCENARIOS):
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"
