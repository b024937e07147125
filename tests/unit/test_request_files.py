"""Requests as files in git: what they say, and what is found about them without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.cli.options import LimitOptions, ScopeOptions, WhyOptions
from backcast.cli.request import asked_request, to_request
from backcast.errors import BackcastError, ConfigError, InvalidRequest
from backcast.model.finding import Severity
from backcast.model.log import Isolation
from backcast.model.policy import Policy
from backcast.model.report import RequestCheck
from backcast.model.topic_report import PartitionOffsets, TopicOffsets
from backcast.plan.why import reason_problem
from backcast.project.request_check import Checking, check_requests
from backcast.project.request_file import read_request
from backcast.store import open_store
from backcast.testing.samples import sample_manifest
from tests.unit.projects import project, write

NOW = datetime(2026, 6, 1, tzinfo=UTC)
REASON = "refunds were counted as sales"
APRIL = f"pipeline: daily\nfrom: 2026-04-01\nto: 2026-05-01\nreason: {REASON}\n"


def checked(root: Path, *texts: str, policy: Policy | None = None, run: str | None = None) -> list[RequestCheck]:
    found = project(root)
    files = [root / f"requests/{number}.yaml" for number in range(len(texts))]
    write(root, {f"requests/{number}.yaml": text for number, text in enumerate(texts)})
    with open_store(f"sqlite:///{root}/s.db") as store:
        if run is not None:
            manifest = sample_manifest(pipeline="daily", dataset="daily")
            request = read_request(write(root, {"run.yaml": run}) / "run.yaml").request
            target = manifest.target.identity.model_copy(update={"name": "lake.shop.daily"})
            pinned = manifest.target.model_copy(update={"identity": target})
            store.runs.create(manifest.model_copy(update={"request": request, "target": pinned}))
        return check_requests(files, Checking(found, store.runs, policy, NOW))


def codes(check: RequestCheck) -> dict[str, Severity]:
    return {each.code: each.severity for each in check.findings}


def test_a_file_says_what_the_options_of_plan_say(tmp_path: Path) -> None:
    text = """\
        pipeline: daily
        dates: [2026-04-02, 2026-04-01]
        exclude: 2026-04-02
        where: {shop: [S1, S2], tenant: T-41}
        kind: repair
        reason: refunds were counted as sales
        ticket: DATA-91
        affected: 12
        max_rows: 100
        max_cost: 2.5
        max_duration: 30m
        """
    write(tmp_path, {"r.yaml": text})
    scope = ScopeOptions(
        on=("2026-04-01", "2026-04-02"), exclude=("2026-04-02",), where=("shop=S1", "shop=S2", "tenant=T-41")
    )
    why = WhyOptions(reason=REASON, ticket="DATA-91", affected=12, kind="repair")
    typed = to_request("daily", scope, why, LimitOptions(max_rows=100, max_cost=2.5, max_duration="30m"))
    assert read_request(tmp_path / "r.yaml", typed.requested_by).request == typed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pipeline: daily\nfrom: 2026-04-31\nto: 2026-05-01\n", "r.yaml:2: from: '2026-04-31' is not a date or time"),
        ("pipeline: daily\nfrom: 2026-05-02\nto: 2026-05-01\n", "r.yaml:1: the window runs backwards"),
        ("pipeline: daily\nfrom: 2026-05-01\nto: 2026-05-01\n", "the window is empty"),
        ("pipeline: daily\nfrom: 2026-05-01\n", "to is missing"),
        ("pipeline: daily\n", "which days?"),
        ("pipeline: daily\ndates: [2026-4-1]\n", "r.yaml:2: dates[0]: expected a day"),
        (
            "pipeline: daily\nfrom: 2026-05-01\nto: 2026-05-03\nresaon: x\n",
            "r.yaml:4: resaon: unknown key; did you mean",
        ),
        ("pipeline: daily\ndates: 2026-05-01\nkind: fix\n", "r.yaml:3: kind: expected one of"),
        ("pipeline: daily\ndates: 2026-05-01\nmax_cost: inf\n", "r.yaml:3: max_cost: expected at most"),
        (f"pipeline: daily\ndates: 2026-05-01\nmax_rows: {10**26}\n", "r.yaml:3: max_rows: expected at most"),
        (
            "pipeline: daily\ndates: 2026-05-01\nwhere: {shop: []}\n",
            "where.shop: expected at least one entry",
        ),
        ("pipeline: daily\ndates: 2026-05-01\nfrom: 2026-05-01\nto: 2026-05-03\n", "dates cannot be mixed"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, {"r.yaml": text})
    with pytest.raises(ConfigError) as caught:
        read_request(tmp_path / "r.yaml")
    assert said in caught.value.message


def test_a_good_request_is_good_and_what_is_not_known_is_said(tmp_path: Path) -> None:
    (found,) = checked(tmp_path, APRIL)
    assert not found.refused
    assert codes(found) == {"request.retention": Severity.NOTE}
    assert round(found.days or 0) == 30


def test_an_unknown_pipeline_and_a_day_that_is_not_in_the_window_are_told_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"0.yaml:1: pipeline: no pipeline is called 'dayly'"):
        checked(tmp_path, APRIL.replace("daily", "dayly"))
    with pytest.raises(ConfigError, match=r"0.yaml:2: excluded day 2026-06-01 is not in the window"):
        checked(tmp_path, f"{APRIL}exclude: 2026-06-01\n")


def test_the_same_request_in_two_files_is_refused(tmp_path: Path) -> None:
    other = APRIL.replace(REASON, "because of what the auditors found")
    first, second, third = checked(tmp_path, APRIL, other, APRIL.replace("2026-04-01", "2026-04-02"))
    assert "request.duplicate" not in codes(first)
    assert codes(second)["request.duplicate"] is Severity.BLOCK
    assert "request.duplicate" not in codes(third)
    assert codes(third)["request.overlap"] is Severity.WARN


def test_the_same_window_in_other_words_is_the_same_request(tmp_path: Path) -> None:
    days = APRIL.replace("from: 2026-04-01\nto: 2026-05-01", "dates: [2026-04-01, 2026-04-02]")
    same = APRIL.replace("2026-04-01", "2026-04-01T00:00").replace("2026-05-01", "2026-04-03")
    apart = APRIL.replace("2026-04-01", "2026-04-03")
    _, second, third = checked(tmp_path, days, same, apart)
    assert codes(second)["request.duplicate"] is Severity.BLOCK
    assert not codes(third).keys() & {"request.duplicate", "request.overlap"}
    (known,) = checked(tmp_path / "known", same, run=days)
    assert codes(known)["request.planned"] is Severity.BLOCK


def test_a_request_that_is_planned_already_is_refused(tmp_path: Path) -> None:
    (same,) = checked(tmp_path, APRIL, run=APRIL)
    assert codes(same)["request.planned"] is Severity.BLOCK


def test_an_overlap_with_an_open_run_is_told(tmp_path: Path) -> None:
    window = APRIL.replace("2026-04-01", "2025-01-02").replace("2026-05-01", "2025-01-05")
    (other,) = checked(tmp_path, window, run=APRIL)
    assert codes(other)["overlap.planned-run"] is Severity.WARN
    (apart,) = checked(tmp_path / "apart", window.replace("2025-01-02", "2025-01-04T12:00"), run=APRIL)
    assert "overlap.planned-run" not in codes(apart)


def test_what_is_still_to_come_is_told(tmp_path: Path) -> None:
    (found,) = checked(tmp_path, APRIL.replace("2026-05-01", "2027-05-01"))
    assert codes(found)["request.future"] is Severity.WARN


@pytest.mark.parametrize(
    "reason", ["", "fix", "test", "asdf asdf asdf asdf", "fix the bug please fix", "aaaaaaaaaaaaaaaa bbb"]
)
def test_a_reason_that_says_nothing_is_refused(tmp_path: Path, reason: str) -> None:
    assert reason_problem(reason) is not None
    (found,) = checked(tmp_path, APRIL.replace(REASON, f"'{reason}'"))
    assert codes(found)["request.reason"] is Severity.BLOCK


@pytest.mark.parametrize("reason", [REASON, "Zeitzone falsch seit Januar", "fix time zone of the SLA clock"])
def test_a_reason_that_says_something_is_not(reason: str) -> None:
    assert reason_problem(reason) is None


def test_the_ticket_has_the_form_that_the_policy_asks_for(tmp_path: Path) -> None:
    policy = Policy(roles={"a": ("b",)}, ticket=r"DATA-\d+")
    for ticket, refused in (("", True), ("DATA-x", True), ("XDATA-1", True), ("DATA-91", False)):
        (found,) = checked(tmp_path, f"{APRIL}ticket: '{ticket}'\n", policy=policy)
        assert ("request.ticket" in codes(found)) is refused, ticket


def test_a_file_and_options_are_not_mixed(tmp_path: Path) -> None:
    file = write(tmp_path, {"r.yaml": APRIL}) / "r.yaml"
    none = ScopeOptions(), WhyOptions(), LimitOptions()
    assert asked_request(None, file, *none).pipeline == "daily"
    for pipeline, given in (("daily", none), (None, (ScopeOptions(on=("2026-04-01",)), *none[1:]))):
        with pytest.raises(InvalidRequest, match="says all of it"):
            asked_request(pipeline, file, *given)
    with pytest.raises(InvalidRequest, match="which pipeline"):
        asked_request(None, None, *none)


def test_the_command_looks_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path)
    write(tmp_path, {"r.yaml": APRIL, "bad.yaml": APRIL.replace(REASON, "fix")})
    before = sorted(tmp_path.rglob("*"))
    where = ["--project", str(tmp_path)]
    assert dispatch(["request", "validate", str(tmp_path / "r.yaml"), *where]) == 0
    assert "good" in capsys.readouterr().out
    assert dispatch(["request", "validate", str(tmp_path / "r.yaml"), str(tmp_path / "bad.yaml"), *where]) == 3
    assert "request.reason" in capsys.readouterr().out
    assert dispatch(["request", "validate", str(tmp_path / "none.yaml"), *where]) == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "options",
    [
        {"max_rows": 0},
        {"max_cost": -1.0},
        {"max_duration": "soon"},
        {"max_rows": 10**26},
        {"max_cost": float("inf")},
        {"max_cost": float("nan")},
    ],
)
def test_a_budget_that_allows_nothing_or_everything_is_a_mistake(options: dict[str, object]) -> None:
    with pytest.raises(BackcastError, match="--max"):
        to_request("daily", ScopeOptions(on=("2026-04-01",)), WhyOptions(), LimitOptions(**options))  # type: ignore[arg-type]  # tests name any option


TOPIC = """\
name: shop
catalogs: {lake: {type: jdbc, uri: "jdbc:sqlite:.lake/catalog.db", warehouse: .lake/warehouse}}
sources:
  orders:
    type: kafka
    servers: "127.0.0.1:9"
    topic: orders
    value: {format: json, columns: "id BIGINT, at TIMESTAMP"}
    time: {column: at}
datasets:
  daily: {table: lake.shop.daily, time: {column: day, kind: date}}
pipelines:
  daily: {transform: "pipelines.daily:daily", version: 1.0.0, inputs: {orders: orders}, output: daily}
"""


def begins(log_start: int, at: datetime) -> TopicOffsets:
    """A topic whose only partition answers every moment before its first record with that record."""
    first = PartitionOffsets(partition=0, log_start=log_start, offset=log_start, log_end=99, record_time=at)
    return TopicOffsets(
        source="orders",
        topic="orders",
        topic_id="t",
        isolation=next(iter(Isolation)),
        timestamp_type="CreateTime",
        at=at,
        partitions=(first,),
    )


@pytest.mark.parametrize(
    ("log_start", "first", "code"),
    [(7, "2026-04-10", "request.retention-passed"), (7, "2026-03-31", None), (0, "2026-04-10", None)],
)
def test_what_the_log_of_a_topic_has_lost_is_told_without_spark(
    tmp_path: Path, log_start: int, first: str, code: str | None
) -> None:
    found = project(tmp_path, TOPIC)
    file = write(tmp_path, {"r.yaml": APRIL}) / "r.yaml"
    at = datetime.fromisoformat(first).replace(tzinfo=UTC)
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        asked = Checking(found, store.runs, None, NOW, lambda name, moment: begins(log_start, at))
        (answer,) = check_requests([file], asked)
        assert codes(answer) == ({code: Severity.WARN} if code else {})
        (silent,) = check_requests([file], Checking(found, store.runs, None, NOW))
        assert codes(silent) == {"request.retention": Severity.NOTE}
