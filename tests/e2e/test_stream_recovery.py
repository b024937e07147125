"""A stream whose checkpoint is lost comes back at exactly the offset that its table proves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.errors import Refused
from backcast.model.integrity import changes
from backcast.model.pipeline import TableFormat
from backcast.model.recovery import Recovery, Way
from backcast.model.request import Request
from backcast.project.config import load_project
from backcast.testing.faults import at_point
from backcast.testing.orders import Orders, rows_of, spread
from tests.crash.life import DoomedWiring

_SENT = list(spread(3, 10))
_ALL = ("2026-01-01", "2026-02-01")


def _recovered(orders: Orders, **how: bool) -> Recovery:
    with closing(orders.open().world) as world:
        control = ControlPlane(world)
        return control.stream_recover("live", control.stream_recovery("live"), **how)


def _typed(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str]:
    """Exit code and answer of a command, for machines."""
    monkeypatch.chdir(orders.root)
    with closing(orders.open().world) as world, in_process(ControlPlane(world)):
        code = dispatch([*words, "--json"])
    return code, capsys.readouterr().out


class Died(BaseException):
    """Nothing in the product may catch it."""


def _die() -> None:
    raise Died("killed here")


def _caught_up(orders: Orders) -> None:
    with closing(orders.open().world) as world:
        ControlPlane(world).stream_start("live", once=True)


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_a_lost_or_damaged_checkpoint_is_made_anew_and_no_record_is_lost_or_doubled(
    new_orders: Callable[..., Orders],
    table_format: TableFormat,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what else is wrong with the table is told with it."""
    orders = new_orders(table_format=table_format)
    orders.configure(stream="most_per_trigger: 8")
    orders.send(_SENT[:10])
    _caught_up(orders)
    checkpoint = Path(_recovered(orders).checkpoint)
    whole = _recovered(orders)
    assert (whole.way, sum(whole.proven.values())) == (Way.START, 10)
    shutil.rmtree(checkpoint)
    orders.send(_SENT[10:20])
    with closing(orders.open().world) as world:
        stale = ControlPlane(world).stream_recovery("live")
    lost = _recovered(orders)
    assert (lost.way, lost.proven, lost.gone) == (Way.FRESH, whole.proven, ())
    again = _recovered(orders)
    assert again.way is Way.START, "repeated, it finds that all is done"
    _caught_up(orders)
    with closing(orders.open().world) as world:
        with pytest.raises(Refused, match="moved since it was looked at") as refused:
            ControlPlane(world).stream_recover("live", stale)
        assert "backcast stream recover live" in refused.value.hint, "or its records would come a second time"
    for file in (checkpoint / "offsets").iterdir():
        file.write_text("v1\n{")
    orders.send(_SENT[20:])
    with pytest.raises(Refused, match="cannot be read"):
        _caught_up(orders)
    damaged = _recovered(orders)
    assert damaged.way is Way.FRESH
    assert any("offsets/" in each for each in damaged.damages)
    _caught_up(orders)
    assert orders.rows() == rows_of(_SENT, *_ALL)
    (kept,) = checkpoint.parent.glob(f"{checkpoint.name}.before-recover-*")
    assert (kept / "offsets").is_dir(), "what was there is kept"

    orders.spark.sql(f"DELETE FROM {orders.table} WHERE day = '2026-01-02'")
    orders.spark.sql(f"INSERT INTO {orders.table} SELECT * FROM {orders.table} WHERE id = 3")
    (checkpoint / "metadata").write_text("{")
    code, told = _typed(orders, monkeypatch, capsys, "stream", "recover", "live", "--look")
    looked = Recovery.model_validate_json(told)
    assert (code, looked.way) == (0, Way.FRESH)
    assert looked.integrity is not None
    assert [(each.code, each.reason) for each in looked.integrity.findings] == [
        ("table.doubled-keys", "1 key more than once in 1 place, the first 2026-01-01 to 2026-01-02, e.g. id=3"),
        ("table.missing-time", "1 day without a row, the first 2026-01-02 to 2026-01-03"),
    ]
    plans = [each.remedy for each in looked.integrity.findings]
    assert plans[0].startswith("backcast plan orders --from 2026-01-01 --to 2026-01-02 --kind repair")
    assert plans[1] == "backcast gaps orders_by_day --plan plans exactly that"


def test_a_stream_that_retention_overtook_gets_the_lost_offsets_from_the_archive_also_after_a_death(
    new_orders: Callable[..., Orders],
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its checkpoint is whole. Recovered and killed before the archive was read, it knows what it still owes. Before,
    somebody has added a row of a record that the stream has not read: it would have added it once more.
    """
    orders = new_orders(source=f"archive: {{table: {namespace}.kept}}")
    orders.configure(source=f"archive: {{table: {namespace}.kept}}", pipeline="publish: {mode: append}")
    config, model = orders.root / "backcast.yaml", orders.root / "models" / "orders.sql"
    config.write_text(
        config.read_text().replace("    key: [id]\n", "    key: [id]\n    position: {partition: p, offset: o}\n")
    )
    model.write_text(model.read_text().replace("id,", "id, _kafka.partition AS p, _kafka.offset AS o,"))
    orders.spark.sql(f"ALTER TABLE {orders.table} ADD COLUMNS (p INT, o BIGINT)")
    orders.send(_SENT[:15])
    _caught_up(orders)
    orders.send(_SENT[15:])
    control = orders.open()
    with closing(control.world):
        control.archive("orders")
        cut = {key: end + 1 for key, end in control.stream_recovery("live").proven.items()}
        orders.broker.delete_records(orders.topic, cut)
        with pytest.raises(Refused, match=r"no longer has offsets 0=.*, which stream live has not read") as refused:
            control.stream_start("live", once=True)
        assert "backcast stream recover live" in refused.value.hint
    ahead = f"SELECT 99, shop, at, amount, day, 0, {cut[0] + 2} FROM {orders.table} LIMIT 1"
    orders.spark.sql(f"INSERT INTO {orders.table} {ahead}")
    code, told = _typed(orders, monkeypatch, capsys, "stream", "recover", "live", "--yes")
    assert (code, f"rows carry offsets 0={cut[0] + 2}..{cut[0] + 3}" in told) == (3, True)
    orders.spark.sql(f"DELETE FROM {orders.table} WHERE id = 99")
    found = _recovered(orders)
    assert (found.way, found.damages, found.starting) == (Way.FRESH, (), cut)
    with closing(orders.open().world) as world:
        control = ControlPlane(world)
        again = control.stream_recovery("live")
        assert (again.way, again.gone, again.lacking) == (Way.START, (), found.gone)
        before = control.stream_integrity("live", again)
        assert [each.code for each in before.findings] == ["table.offsets-gone"]
        lacking = ",".join(f"{each.partition}={each.start}..{each.end}" for each in again.lacking)
        plan = control.plan(Request(pipeline="orders", offsets=lacking, reason="lost", requested_by="tests"))
        control.run(plan.run_id)
        with at_point("publish.after-intent", _die), pytest.raises(Died):
            ControlPlane(DoomedWiring(load_project(orders.root))).publish(plan.run_id)
        with pytest.raises(Refused, match=f"run {plan.run_id} adds some of these offsets, and its publish is not over"):
            control.stream_recovery("live")
        control.publish(plan.run_id)
        assert control.stream_recovery("live").lacking == ()
        mended, new = changes(before, control.stream_integrity("live", again))
        assert (mended, new) == (before.findings, ())
        control.stream_start("live", once=True)
    assert orders.rows() == rows_of(_SENT, *_ALL)


def test_what_retention_took_is_named_and_state_is_not_thrown_away_unasked(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders()
    orders.configure(stream="watermark: {column: at, delay: 1h}")
    model = orders.root / "models" / "orders.sql"
    stateful = "SELECT min(id) AS id, shop, at, max(amount) AS amount, to_date(at) AS day FROM orders GROUP BY shop, at"
    model.write_text(stateful)
    orders.send(_SENT[:20])
    _caught_up(orders)
    orders.send(_SENT[20:])
    with closing(orders.open().world) as world:
        control = ControlPlane(world)
        before = control.stream_recovery("live")
        shutil.rmtree(Path(before.checkpoint) / "state")
        lost = control.stream_recovery("live")
        assert lost.damages == ("state/0: nothing is left of this operator's state",)
        assert [each.file for each in control.checkpoint_verify("live").damages] == ["state/0"]
    shutil.rmtree(before.checkpoint)
    with pytest.raises(Refused, match="keeps state"):
        _recovered(orders)
    cut = {partition: offset + 1 for partition, offset in before.proven.items()}
    orders.broker.delete_records(orders.topic, cut)
    found = _recovered(orders, without_state=True)
    assert {each.partition: (each.start, each.end) for each in found.gone} == {
        partition: (before.proven[partition], offset) for partition, offset in cut.items()
    }
    assert found.starting == cut


def test_windows_that_lack_what_retention_took_are_restated_from_the_archive_before_the_stream_goes_on(
    new_orders: Callable[..., Orders],
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The pipeline replaces windows. Of a lost window the stream has read some, and will read some more."""
    archive = f"archive: {{table: {namespace}.kept}}"
    orders = new_orders(source=archive)
    orders.send(_SENT[:15], partition=0)
    _caught_up(orders)
    orders.send(_SENT[15:], partition=0)
    with closing(orders.open().world) as world:
        ControlPlane(world).archive("orders")
    orders.broker.delete_records(orders.topic, {0: 18})
    with closing(orders.open().world) as world:
        found = ControlPlane(world).stream_recovery("live")
        assert (found.by_offset, found.by_window, found.starting[0]) == (False, True, 18)
        ControlPlane(world).stream_recover("live", found)
        again = ControlPlane(world).stream_recovery("live")
        assert (again.way, again.gone, again.lacking) == (Way.START, (), found.gone), "killed behind the checkpoint"
        (request,) = ControlPlane(world).stream_lost_windows("live", again.lacking).requests
        assert (request.start, request.end) == ("2026-01-02", "2026-01-03")
        with in_process(ControlPlane(world)):
            code = started_nothing(orders, monkeypatch, "stream", "recover", "live", "--yes", "--json")
        told = capsys.readouterr()
        assert code == 0, told.err
        assert orders.rows() == rows_of(_SENT[:18], *_ALL)
        assert ControlPlane(world).stream_recovery("live").lacking == ()
    _caught_up(orders)
    assert orders.rows() == rows_of(_SENT, *_ALL)


def started_nothing(orders: Orders, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The command, with a process that would run the stream left out."""
    monkeypatch.setattr("backcast.cli.commands.stream_recover.restarted", lambda *_: None)
    monkeypatch.chdir(orders.root)
    return dispatch(list(words))
