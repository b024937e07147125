"""Whose checkpoint a folder is, however it is spelled; and who keeps it from being changed: a lease, or its files."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backcast.control import ControlPlane
from backcast.errors import Conflict, InvalidRequest, LeaseHeld, Refused
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.run.lease import acquire
from backcast.testing.store_stream_contract import held, sample_batch
from backcast.verbs.checkpoints import SinkChoice, Where
from tests.unit.checkpoints import QUERY, new_checkpoint
from tests.unit.test_checkpoint_copies import bytes_of
from tests.unit.test_config_streams import _GOOD, _STREAM

UNCHECKED = SinkChoice(unchecked=True)
Change = Callable[[ControlPlane, str], object]


def rewound(control: ControlPlane, name: str) -> object:
    return control.checkpoint_rewind(name, Where(batch=2), sink=UNCHECKED, stopped=True)


def restored(control: ControlPlane, name: str) -> object:
    return control.checkpoint_restore(name, str(Path.cwd() / "monday"), sink=UNCHECKED, stopped=True)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that declares a stream, whose checkpoint can be spelled in several ways; a backup of it."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/backcast.yaml").write_text(_GOOD + _STREAM)
    new_checkpoint(tmp_path / "shop/.checkpoints/live")
    (tmp_path / "alias").symlink_to(tmp_path / "shop/.checkpoints/live")
    (tmp_path / "shop/elsewhere").symlink_to(tmp_path / "shop/.checkpoints")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path


@pytest.fixture
def control(root: Path) -> Iterator[ControlPlane]:
    control = ControlPlane(Wiring(load_project(root / "shop", environ={})))
    control.checkpoint_backup("live", to=str(root / "shop/monday"))
    yield control
    control.world.close()


SPELLED = {
    "its name": "live",
    "its folder": ".checkpoints/live",
    "up and down again": "../shop/.checkpoints/live",
    "a link to it": "../alias",
    "a link above it": "elsewhere/live",
    "an address": "file:{root}/shop/../alias",
}


@pytest.mark.parametrize("change", [rewound, restored])
@pytest.mark.parametrize("spelled", SPELLED.values(), ids=SPELLED)
def test_however_it_is_spelled_the_checkpoint_of_a_stream_that_runs_stays_as_it_is(
    root: Path, control: ControlPlane, change: Change, spelled: str
) -> None:
    world, folder = control.world, root / "shop/.checkpoints/live"
    name = spelled.format(root=root)
    before = bytes_of(root)
    with (
        acquire(world.store().leases, "stream/live", world.holder(), world.clock, lambda _: False),
        pytest.raises(LeaseHeld),
    ):
        change(control, name)
    stay = {file: data for file, data in bytes_of(root).items() if "/.backcast/" not in file}
    assert stay == {file: data for file, data in before.items() if "/.backcast/" not in file}

    # Once it is stopped the folder itself is exchanged, and what led there still leads there.
    rewound(control, name)
    assert (root / "alias").is_symlink()
    assert control.checkpoint_inspect("live").committed == 2
    assert len(list(folder.parent.glob("live.before-rewind-*"))) == 1
    restored(control, name)
    assert (root / "alias").is_symlink()
    assert control.checkpoint_inspect(str(folder)).committed == 4


def test_a_stream_that_is_declared_by_an_address_is_known_by_its_folder(root: Path) -> None:
    address = f"checkpoint: file://{root}/shop/.checkpoints/live"
    (root / "shop/backcast.yaml").write_text(_GOOD + _STREAM.replace("checkpoint: .checkpoints/live", address))
    control = ControlPlane(Wiring(load_project(root / "shop", environ={})))
    assert control.checkpoint_inspect("elsewhere/live").stream == "live"
    control.world.close()


def test_what_spark_told_of_a_stream_that_ran_here_shows_which_state_is_gone(root: Path, control: ControlPlane) -> None:
    """Of copies, too; and a checkpoint whose id cannot be read is known by its folder."""
    streams, folder = control.world.store().streams, root / "shop/.checkpoints/live"
    shutil.rmtree(folder)
    new_checkpoint(folder, watermark=True)
    control.checkpoint_backup("live", to=str(root / "copy"))
    assert {each.kind for each in control.checkpoint_verify("live").damages} == {"state-unknown"}
    lease = held(control.world.store())
    for operators, kinds in ((2, {"state-missing"}), (0, set())):
        streams.record(sample_batch(5, query_id=QUERY, operators=operators), lease)
        for name in ("live", str(root / "copy")):
            assert {each.kind for each in control.checkpoint_verify(name).damages} == kinds
    (folder / "metadata").unlink()
    assert {each.kind for each in control.checkpoint_verify("live").damages} == {"metadata-missing"}


def test_a_moment_needs_the_delay_of_the_watermark(root: Path, control: ControlPlane) -> None:
    folder = str(new_checkpoint(root / "foreign", watermark=True))

    def forked(to: str, name: str = folder, delay: str | None = None) -> int | None:
        where = Where(before="2026-01-01T00:00:40", delay=delay)
        return control.checkpoint_fork(name, str(root / to), where, sink=UNCHECKED, stateless=True).batch

    with pytest.raises(InvalidRequest, match="how far the watermark of the query stays behind its newest row"):
        forked("none")
    with pytest.raises(InvalidRequest, match="--delay: 'soon' is not a duration"):
        forked("none", delay="soon")
    assert (forked("at-once", delay="0s"), forked("later", delay="10s")) == (3, 2)
    with pytest.raises(Refused, match="the query has no watermark to go by"):
        forked("declared", name="live")


def test_offsets_do_not_begin_a_query_without_its_state_unless_that_is_wanted(
    root: Path, control: ControlPlane
) -> None:
    folder, at = new_checkpoint(root / "foreign", watermark=True), Where(offset="0=20,1=20")
    with pytest.raises(Refused, match="there is no state, though the query has a watermark"):
        control.checkpoint_fork(str(folder), str(root / "fork"), at, sink=UNCHECKED)
    for number, told in enumerate(({"fresh_state": True}, {"stateless": True})):
        made = control.checkpoint_fork(str(folder), str(root / f"fork-{number}"), at, sink=UNCHECKED, **told)
        assert made.batch is None


@pytest.mark.parametrize("change", [rewound, restored])
def test_files_that_change_right_now_are_believed_more_than_any_word(
    root: Path, control: ControlPlane, change: Change
) -> None:
    """Of a stream that somebody else runs."""
    folder, stop = new_checkpoint(root / "foreign", batches=6), threading.Event()

    def stream() -> None:
        number = 0
        while not stop.wait(0.05):
            number += 1
            (folder / f"offsets/.{6 + number}.tmp").write_text("half")

    writer = threading.Thread(target=stream)
    writer.start()
    try:
        with pytest.raises(Conflict, match="change right now"):
            change(control, str(folder))
    finally:
        stop.set()
        writer.join()
    assert control.checkpoint_inspect(str(folder)).committed == 5
    assert not list(root.glob("foreign.before-*"))
