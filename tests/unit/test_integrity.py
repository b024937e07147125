"""What is wrong with the table of a stream that is brought back, and what mends it."""

from __future__ import annotations

from typing import Any

from backcast.cli.render.recovery import render_integrity, render_recovery
from backcast.model.finding import Severity
from backcast.model.gaps import Fate, Hole
from backcast.model.health import Gap, Health, Keys
from backcast.model.integrity import Integrity, changes, findings_of
from backcast.model.log import OffsetRange, Ranges
from backcast.model.recovery import Recovery, Way
from backcast.model.request import Request
from backcast.model.time import Grain
from tests.unit.cli_screens import shown
from tests.unit.test_gaps_screen import days
from tests.unit.test_gaps_screen import found as gaps_found

AHEAD = (OffsetRange(partition=0, start=30, end=35),)


def health(**more: Any) -> Health:
    values: dict[str, Any] = {
        "dataset": "daily",
        "table": "lake.shop.daily",
        "version": "7",
        "grain": Grain.DAY,
        "zone": "UTC",
        "window": days(0, 10),
        "rows": 40,
        "without_time": 0,
        "pieces": 10,
        "usual": 4,
        "gaps": (),
        "thin": (),
        "keys": Keys(columns=("id",), nulls=0, doubles=0, example=""),
        "pipelines": ("daily",),
        "restated_by": ("daily",),
    }
    return Health(**{**values, **more})


def looked(ahead: Ranges = (), *, appends: bool = True, rows: Health | None = None, **gaps: Any) -> Integrity:
    told, lacking = rows or health(), gaps_found(**gaps)
    findings = findings_of(told, lacking, ahead, appends=appends)
    return Integrity(health=told, gaps=lacking, ahead=ahead, findings=findings)


def test_each_finding_names_what_mends_it() -> None:
    keys = Keys(columns=("id",), nulls=2, doubles=3, example="id=7", where=(days(1, 2),))
    holes = (Hole(range=OffsetRange(partition=0, start=3, end=5), fate=Fate.THERE),)
    fix = {"gaps": (Gap(window=days(3, 5), pieces=2),), "requests": (Request(pipeline="daily"),), "holes": holes}
    found = {each.code: each for each in looked(rows=health(keys=keys, without_time=1), **fix).findings}
    assert sorted(found) == [
        "table.doubled-keys",
        "table.missing-time",
        "table.no-time",
        "table.null-keys",
        "table.offset-holes",
    ]
    doubled = found["table.doubled-keys"]
    assert doubled.reason == "3 keys more than once in 1 place, the first 2026-01-06 to 2026-01-07, e.g. id=7"
    assert (
        doubled.remedy == "backcast plan daily --from 2026-01-06 --to 2026-01-07 --kind repair --reason 'doubled keys'"
    )
    assert found["table.missing-time"].remedy == "backcast gaps daily --plan plans exactly that"
    assert (
        found["table.offset-holes"].reason == "no row carries 2 offsets, the first 0=3..5: the topic has records there"
    )
    assert not looked(rows=health(keys=keys)).problems, "a stream that goes on makes none of it worse"
    appended = looked(rows=health(keys=keys, restated_by=())).findings[0]
    assert "none fills daily: declare one" in appended.remedy, "an append cannot take a double away"


def test_only_rows_that_an_append_would_add_a_second_time_stop_a_recovery() -> None:
    (stops,) = looked(AHEAD).problems
    assert stops.reason == "rows carry offsets 0=30..35, which the stream has not read: it would add them a second time"
    (merged,) = looked(AHEAD, appends=False).findings
    assert merged.severity is Severity.NOTE
    unasked = looked(unanswered="no broker answers", between_rows="no broker answers")
    assert [each.code for each in unasked.findings] == ["table.offsets-not-asked"]


def test_what_the_log_has_lost_an_archive_may_have() -> None:
    lost = tuple(OffsetRange(partition=0, start=start, end=end) for start, end in ((3, 5), (30, 45)))
    gaps = gaps_found(holes=tuple(Hole(range=each, fate=Fate.GONE) for each in lost))

    def remedy(*owed: OffsetRange, archived: bool = True, windows: str = "") -> str:
        (found,) = findings_of(health(), gaps, (), appends=True, archived=archived, owed=owed, windows=windows)
        assert found.reason == "no row carries 17 offsets, the first 0=3..5: the topic no longer has all of them"
        return found.remedy

    assert remedy() == "they may be in the archive: backcast plan daily --offsets 0=3..5,0=30..45 --kind repair"
    late = "backcast late live --plan"
    assert remedy(windows=late) == f"they may be in the archive: {late}", "a pipeline that replaces plans no offsets"
    assert remedy(lost[1]) == "the others may be in the archive: backcast plan daily --offsets 0=3..5 --kind repair"
    assert remedy(*lost) == "nothing: the recovery takes them from the archive"
    assert "declare that as the archive" in remedy(archived=False)


def test_after_rows_were_added_the_difference_is_told() -> None:
    gone = Hole(range=OffsetRange(partition=0, start=3, end=5), fate=Fate.GONE)
    keys = Keys(columns=("id",), nulls=0, doubles=1, example="id=7")
    before, after = looked(holes=(gone,)), looked(rows=health(keys=keys))
    mended, new = changes(before, after)
    assert [[each.code for each in some] for some in (mended, new)] == [["table.offsets-gone"], ["table.doubled-keys"]]
    screen = shown(render_integrity(before, after), width=120)
    assert "mended  no row carries 2 offsets" in screen
    assert "table.doubled-keys" in screen
    assert "as before" in shown(render_integrity(before, before), width=120)


def test_a_recovery_shows_the_table_before_anything_is_asked() -> None:
    at: dict[str, Any] = {"position": {0: 30}, "proven": {0: 30}, "batch": 0, "version": "7", "gone": (), "lacking": ()}
    recovery = Recovery(
        stream="live",
        pipeline="daily",
        dataset="daily",
        table="lake.shop.daily",
        checkpoint="/c",
        query_id="q",
        damages=("offsets/0: it is not JSON",),
        recoverable=None,
        stateful=False,
        **at,
        by_offset=True,
        archived=False,
        way=Way.FRESH,
        why="the checkpoint is damaged",
        integrity=looked(AHEAD),
    )
    screen = shown(render_recovery(recovery), width=120)
    assert "40 rows looked at, the newest: 2026-01-05 .. 2026-01-14" in screen
    assert screen.index("table.read-ahead") < screen.index("do: undo the run that added them")
    sound = shown(render_recovery(recovery.model_copy(update={"integrity": looked()})), width=120)
    assert "id once each, nothing missing" in sound
    assert "Findings" not in sound
    assert recovery.moved(recovery.model_copy(update={"integrity": None})) == ""
