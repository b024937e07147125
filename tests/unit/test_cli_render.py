"""What people see: every sentence that a tired person decides on is there, at 80 columns and without colour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backcast.cli.render.diff import render_diff
from backcast.cli.render.doctor import render_probes
from backcast.cli.render.events import render_event
from backcast.cli.render.gc import render_gc
from backcast.cli.render.pace import pace, plain_line
from backcast.cli.render.plan import render_plan
from backcast.cli.render.runs import render_runs
from backcast.cli.render.status import render_status
from backcast.cli.render.strip import ChunkStrip, merged
from backcast.cli.render.verdict import render_verdict
from backcast.cli.render.window import windows_lines
from backcast.cli.render.words import about, ago, clean, count, duration, moment, rate, remaining, signed, size
from backcast.model.diff import Diff, PartitionDiff
from backcast.model.digest import Digest
from backcast.model.finding import block, note, warn
from backcast.model.manifest import LivePolicy, Semantics, Settings, Survival
from backcast.model.report import GcItem, GcReport, Probe, Restaged
from backcast.model.run import Chunk, Event, InputCount, Lease
from backcast.model.scope import ValueClause
from backcast.model.states import ChunkState, RunState
from backcast.model.time import Interval
from backcast.testing.samples import sample_holder, sample_manifest, sample_publication, sample_verdict
from tests.unit.cli_screens import NOW, sample_plan, sample_run, sample_status, shown


def flat(text: str) -> str:
    """As one line, so that a sentence is found wherever the width broke it."""
    return " ".join(text.split())


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2025, 1, 1, hour, tzinfo=UTC) + timedelta(days=number - 1)


def test_a_plan_answers_what_from_what_how_long_what_risk_and_what_next() -> None:
    page = flat(shown(render_plan(sample_plan())))
    for sentence in (
        "lake.db.orders dataset orders",
        "2025-01-01 .. 2025-01-03 (3 days, last day included; --to 2025-01-04 is exclusive)",
        "3 chunks; whole partitions, replaced in one commit",
        "in scope now: 2,700 rows in 3 files (263.7 KiB)",
        "events: lake.db.events at snapshot",
        "transforms:orders version 1, not in git",
        "1 to 10 s file statistics",
        "if any arrive in scope before publish, publish refuses and changes nothing",
        "guaranteed for 7 days after publish",
        "time zone bug, restatement by ann",
        "Findings ✓ none",
        f"Next backcast run {sample_plan().run_id}",
    ):
        assert sentence in page


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_screen_is_wider_than_the_terminal(width: int) -> None:
    long = sample_status(RunState.RUNNING, "#" * 700 + ">" * 31 + "." * 300)
    for screen in (render_plan(sample_plan()), render_status(long, NOW), render_runs([sample_run()], 50, NOW)):
        assert max(map(len, shown(screen, width).splitlines())) <= width


def test_findings_are_sorted_by_severity_and_each_has_its_remedy() -> None:
    findings = (
        note("n", "small files", "compact"),
        block("b", "overlap", "cancel it"),
        warn("w", "dirty", "commit it"),
    )
    page = shown(render_plan(sample_plan(refused=True, recorded=False, findings=findings)))
    places = [page.index(text) for text in ("BLOCK overlap", "do: cancel it", "WARN  dirty", "NOTE  small files")]
    assert places == sorted(places)
    assert "refused" in page.splitlines()[0]
    assert "backcast run" not in page


def test_a_dry_run_says_that_nothing_was_recorded() -> None:
    page = shown(render_plan(sample_plan(recorded=False)))
    assert "dry run, nothing recorded" in page
    assert "backcast run" not in page


def test_a_plan_names_dirty_files_predicate_warm_up_policy_and_inputs_at_risk() -> None:
    base = sample_manifest(days=3)
    scope = base.scope.model_copy(
        update={
            "exact": True,
            "predicate": base.scope.predicate.and_values((ValueClause(column="tenant", values=("T-41", "T-42")),)),
        }
    )
    pin = base.inputs[0].model_copy(update={"survival": Survival.AT_RISK, "survives_until": NOW})
    code = base.code.model_copy(
        update={"git_commit": "1a2b3c4d5e6f7a8b", "git_dirty": ("a.py", "b.py", "c.py", "d.py")}
    )
    page = flat(
        shown(
            render_plan(
                sample_plan(
                    scope=scope,
                    inputs=(pin,),
                    code=code,
                    settings=Settings(live_policy=LivePolicy.KEEP),
                    input_windows=(base.scope.windows[0].widened(timedelta(days=7), timedelta()),),
                    warm_up_before_seconds=7 * 86_400,
                )
            )
        )
    )
    for sentence in (
        "only rows where tenant is T-41 or T-42",
        "row-exact: other rows of the touched files are carried over unchanged",
        "2024-12-25 .. 2025-01-03, with 7 days before as warm-up",
        "AT RISK expiry may remove it after 2026-03-01 15:00 UTC",
        "git 1a2b3c4d5e6f 4 files differ from the commit: a.py, b.py, c.py and 1 more",
        "stay beside the restated rows",
    ):
        assert sentence in page


def test_windows_are_told_in_days_of_their_zone() -> None:
    berlin = Interval(start=datetime(2025, 3, 29, 23, tzinfo=UTC), end=datetime(2025, 3, 30, 22, tzinfo=UTC))
    assert windows_lines([berlin], "Europe/Berlin") == ["2025-03-30 Europe/Berlin (1 day)"]
    hours = Interval(start=day(1), end=day(1, 5))
    assert windows_lines([hours], "UTC") == ["2025-01-01 00:00 .. 2025-01-01 05:00 (5 h, end exclusive)"]
    several = [Interval(start=day(n), end=day(n + 2)) for n in (1, 5, 9)]
    assert windows_lines(several, "UTC") == [
        "2025-01-01 .. 2025-01-10 (6 days in 3 windows, last day included)",
        "  2025-01-01 .. 2025-01-02",
        "  2025-01-05 .. 2025-01-06",
        "  2025-01-09 .. 2025-01-10",
    ]
    many = [Interval(start=day(2 * n), end=day(2 * n + 1)) for n in range(1, 21)]
    assert windows_lines(many, "UTC")[4] == "  ... 16 more"
    assert len(windows_lines(many, "UTC")) == 6


def test_a_plan_says_which_older_version_is_read_and_what_that_is_meant_to_be() -> None:
    asked = {"asked": "as of 2025-01-31 00:00:00 UTC", "semantics": Semantics.AS_RECORDED}
    (pin,) = sample_manifest().inputs
    page = flat(shown(render_plan(sample_plan(inputs=(pin.model_copy(update=asked),)))))
    assert "at snapshot 9007199254740993, as of 2025-01-31 00:00:00 UTC as-recorded: what was known then" in page


def test_a_running_run_shows_its_strip_its_pace_and_who_works_on_it() -> None:
    lease = Lease(name="run:x", token=1, holder=sample_holder(), expires_at=NOW)
    read = (InputCount(input="events", rows=1000), InputCount(input="orders", rows=20, exact=False))
    status = sample_status(
        RunState.RUNNING, "#>.", rows_per_second=1234.4, seconds_left=95.0, holder=lease, inputs=read
    )
    page = flat(shown(render_status(status, NOW)))
    assert "RUNNING 30 min ago, 2026-03-01 14:30 UTC where it stands" in page
    assert "■▶· ■ 1 staged ▶ 1 running · 1 pending" in page
    assert "900 rows staged, 1,234 rows/s, about 1 min 35 s left" in page
    assert "read 1,000 rows of events at most 20 rows of orders" in page
    assert "process 4000001 on host-1" in page


def test_failed_chunks_with_the_same_error_are_told_once() -> None:
    failed = tuple(
        Chunk(run_id="r", chunk_id=f"2025-01-0{n}", ordinal=n, state=ChunkState.FAILED, attempts=n, error="boom\nat 4")
        for n in (1, 2, 3)
    )
    page = flat(shown(render_status(sample_status(RunState.FAILED, "xxx", failed_chunks=failed), NOW)))
    assert "3 failed chunks 2025-01-01 and 2 other chunks, after 3 attempts boom at 4" in page


def test_a_rejected_run_shows_the_checks_that_failed() -> None:
    verdict = sample_verdict("r", accepted=False)
    page = flat(shown(render_status(sample_status(RunState.REJECTED, "###", verdict=verdict), NOW)))
    assert "✗ rejected 0 of 1 check passed" in page
    assert "1 check failed ✗ rows 900 rows in 1 chunk" in page


def test_a_published_run_offers_its_undo_as_long_as_there_is_one() -> None:
    publication = sample_publication("r")
    values = {"publication": publication, "undo_until": publication.undo_until, "next_command": "backcast undo r"}
    status = sample_status(RunState.PUBLISHED, "###", **values)
    page = flat(shown(render_status(status, NOW)))
    assert "2026-03-01 14:00 UTC, 1 file in, 1 out version 81" in page
    assert "undo until 2026-03-08 14:00 UTC 6 days 23 h left" in page
    assert "To take it back backcast undo r" in page
    assert "over" in shown(render_status(status, publication.undo_until))


def test_a_restaged_run_says_what_was_computed_again_and_whether_its_live_rows_are_proven() -> None:
    restaged = Restaged(times=2, chunks=1, base="3051729675574597004", live_rows=5)
    page = flat(shown(render_status(sample_status(RunState.RUNNING, "##.", restaged=restaged), NOW)))
    assert "restaged 2 times, last 1 of 3 chunks on version 3051729675574597004" in page
    assert "5 live rows in scope, not proven to be in the result" in page
    values = {"restaged": restaged, "verdict": sample_verdict("r")}
    page = flat(shown(render_status(sample_status(RunState.ACCEPTED, "###", **values), NOW)))
    assert "5 live rows in scope, found in the result" in page


def test_before_publish_the_difference_comes_first() -> None:
    page = shown(render_status(sample_status(RunState.ACCEPTED, "###", next_command="backcast publish r"), NOW))
    assert page.index("backcast diff") < page.index("backcast publish r")


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_screen(state: RunState) -> None:
    assert state.upper() in shown(render_status(sample_status(state, "#.."), NOW))
    assert state in shown(render_runs([sample_run(state)], 50, NOW))


def test_a_strip_shows_the_worst_of_what_one_mark_stands_for() -> None:
    assert merged("####x.>>##..", 4) == "#x."
    assert merged("##>.####x###", 4) == ">#x"
    assert merged("#x", 1) == "#x"
    lines = shown(ChunkStrip("#" * 365), width=66).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "■ 365 staged   (one mark: 2 chunks)"


def test_the_list_never_cuts_a_run_id() -> None:
    run = sample_run(dataset="a_very_long_name_of_a_dataset", reason="a reason that goes on and on and on " * 3)
    page = shown(render_runs([run], 1, NOW))
    assert run.run_id in page
    assert "…" in page
    assert "the newest 1; --limit shows more" in page
    assert "no runs" in shown(render_runs([], 50, NOW))


def partition(number: int, base: int, stage: int, salt: str = "") -> PartitionDiff:
    return PartitionDiff(
        chunk=f"{day(number):%Y-%m-%d}",
        base=Digest(rows=base, high=str(base * 7919), low="5"),
        stage=Digest(rows=stage, high=str(stage * 7919), low=salt or "5"),
    )


def test_a_diff_shows_what_changes_and_folds_what_does_not() -> None:
    parts = [
        *(partition(n, 10, 10) for n in range(1, 29)),
        partition(29, 10, 8),
        partition(30, 10, 10, salt="6"),
        partition(31, 0, 4),
    ]
    diff = Diff(run_id="r", base="1", staged="2", partitions=tuple(parts))
    page = shown(render_diff(diff))
    assert "backcast publish r" in page
    assert "backcast publish r" not in shown(render_diff(diff.model_copy(update={"publishable": False})))
    lines = [flat(line) for line in page.splitlines()]
    assert "2025-01-01 .. 2025-01-28 280 280 0 28 chunks same" in lines
    assert any(line.startswith("2025-01-29 10 8 -2 ") and line.endswith(" changed") for line in lines)
    assert any(line.startswith("2025-01-30 10 10 0 ") and line.endswith(" changed") for line in lines)
    assert any(line.startswith("2025-01-31 0 4 +4 - → ") and line.endswith(" added") for line in lines)
    assert "31 chunks: 2 changed, 1 added, 28 same 300 → 302 rows (+2)" in lines
    assert "2025-01-17" not in page
    assert "2025-01-17" in shown(render_diff(diff, everything=True))


def test_a_long_diff_says_what_it_left_out() -> None:
    diff = Diff(run_id="r", base=None, staged="2", partitions=tuple(partition(n, 1, 2) for n in range(1, 101)))
    page = shown(render_diff(diff))
    assert "60 more chunks differ; --all shows them" in page
    assert "2025-04-10" in shown(render_diff(diff, everything=True))


def test_a_verdict_shows_failed_checks_first() -> None:
    page = flat(shown(render_verdict(sample_verdict("r", accepted=False))))
    assert "r rejected" in page
    assert "1 check failed ✗ rows 900 rows in 1 chunk" in page
    assert "backcast publish" not in page
    assert "backcast publish r" in flat(shown(render_verdict(sample_verdict("r"))))


def test_an_event_is_one_line_without_what_says_nothing() -> None:
    data = {"from": None, "to": "planned", "detail": "", "chunks": 3, "manifest": "a" * 64, "why": "two words"}
    event = Event(run_id="r", number=1, at=NOW, name="state.planned", data=data, previous="", sha256="")
    line = flat(shown(render_event(event), width=120))
    assert line == '2026-03-01 15:00:00Z state.planned chunks=3 manifest=aaaaaaaaaaaa why="two words"'


def test_gc_tells_done_from_merely_listed() -> None:
    item = GcItem(run_id="r", table="lake.db.orders", reason="its undo window ended", refs=("a", "b"))
    listed = flat(shown(render_gc(GcReport(items=(item,), kept=("s is open",), dry_run=True))))
    assert "1 run would be dropped r lake.db.orders its undo window ended 2 refs: a, b Kept s is open" in listed
    done = item.model_copy(update={"files_deleted": 7})
    assert "1 run dropped, 7 files deleted" in shown(render_gc(GcReport(items=(done,), kept=(), dry_run=False)))
    assert "nothing to drop" in shown(render_gc(GcReport(items=(), kept=(), dry_run=False)))


def test_doctor_marks_what_is_broken_and_says_what_to_do() -> None:
    probes = [
        Probe(name="java", ok=False, detail="none", remedy="install one"),
        Probe(name="disk", ok=True, detail="5"),
    ]
    page = flat(shown(render_probes(probes)))
    assert page == "✗ java none do: install one ✓ disk 5 1 of 2 probes failed"
    assert "all is well" in shown(render_probes(probes[1:]))


def test_text_from_elsewhere_cannot_drive_the_terminal() -> None:
    evil = sample_run(reason="\x1b[2J\x1b]0;owned\x07 [red]markup[/red]")
    page = shown(render_runs([evil], 50, NOW), width=200)
    assert "\x1b" not in page
    assert "[red]markup[/red]" in page
    assert clean("a\x1bb\tc") == "a�b\tc"


def test_progress_in_words() -> None:
    document = {"step": "stage", "message": "", "done": 31, "total": 365, "rows": 102_300, "seconds": 9.1}
    assert pace(document) == "11,242 rows/s, 1 min 38 s left"
    assert plain_line(document) == "stage: 31/365 chunks, 102,300 rows, 11,242 rows/s, 1 min 38 s left"
    assert pace(document | {"done": 0, "seconds": 0.0}) == ""
    assert pace(document | {"done": 365}) == "11,242 rows/s"
    empty = {"step": "validate", "message": "", "done": 0, "total": 0, "rows": 0, "seconds": 0.0}
    assert plain_line(empty) == "validate"


def test_words() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1_572_864, 5 * 1024**4)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 MiB",
        "5.0 TiB",
    ]
    assert [duration(s) for s in (0.44, 5, 12, 125, 1200, 4800, 86_400, 180_000, 9 * 86_400)] == [
        "0.4 s", "5 s", "12 s", "2 min 05 s", "20 min", "1 h 20 min", "1 day", "2 days 2 h", "9 days",
    ]  # fmt: skip
    assert [about(5, 30), about(30, 300), about(240, 560), about(1, 1)] == [
        "5 to 30 s",
        "30 s to 5 min",
        "4 to 9 min",
        "1 s",
    ]
    assert (count(1, "day"), count(1200, "day"), signed(-3), signed(0)) == ("1 day", "1,200 days", "-3", "0")
    assert [rate(each) for each in (12_300.4, 10.2, 9.6, 0.4, 0.0)] == [
        "12,300 rows/s",
        "10 rows/s",
        "576 rows/min",
        "24 rows/min",
        "0 rows/min",
    ]
    assert [remaining(NOW + timedelta(seconds=s), NOW) for s in (7 * 86_400 - 0.5, 3_599, 30, 0)] == [
        "7 days left", "1 h left", "30 s left", "over",
    ]  # fmt: skip
    assert moment(datetime(2025, 6, 1, 2, tzinfo=UTC)) == "2025-06-01 02:00 UTC"
    assert [ago(NOW - timedelta(seconds=s), NOW) for s in (0, 59, 3700, 200_000)] == [
        "now",
        "59 s ago",
        "1 h ago",
        "2 days ago",
    ]
