"""Evidence of a real run, and the table as its witness."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from backcast.attest.archive import unpacked
from backcast.attest.bundle import bundle
from backcast.attest.keys import PublicKey, SigningKey, new_pair
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.attest.witness import confirmed
from backcast.errors import Drifted, NotVerified
from backcast.model.evidence import Signature
from backcast.model.lineage import WITNESS, WITNESS_NUMBER
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.page.run import run_page
from backcast.store import open_store
from backcast.testing.lives import published_run
from backcast.testing.orders import FIRST, Order, Orders
from backcast.testing.shop import Shop
from tests.e2e.test_rules import declare


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_the_table_witnesses_the_history_of_a_publish_and_of_its_undo(shop: Shop, tmp_path: Path) -> None:
    private, public = new_pair()
    declare(shop, "masked: [shop]\nrules:\n  - range: {column: sales, max: 9, severity: warn}")
    control = shop.open()
    run = control.run(control.plan(shop.request("2026-01-03", "2026-01-05")).run_id)
    control.diff(run.run_id)
    control.diff(run.run_id)
    staged = bundle(control.evidence(run.run_id))
    assert confirmed(staged, verify(staged), control.witnesses("revenue", run.run_id, ()))
    made = control.publish(run.run_id)
    published = bundle(control.evidence(run.run_id))
    undone = control.undo(made.run_id)
    control.note(made.run_id, "taken back: the shops had already been told")
    archive = bundle(control.evidence(made.run_id), SigningKey.read(private, "a test"))

    found = verify(archive, PublicKey.read(public, "a test"))
    assert (found.signature, found.state) == (Signature.VALID, "undone")
    assert found.published == (made.version, undone.undo_version)
    (diff,) = json.loads(unpacked(archive)["diff.json"])
    assert (diff["data"]["summary"], diff["data"]["rows_before"]) == ("4 changed", 4), "looked at twice, kept once"
    (touch,) = control.explain("revenue", partition="2026-01-03").runs
    assert [(chunk.before, chunk.rows) for chunk in touch.chunks] == [(2, 2)]
    (rule,) = json.loads(unpacked(archive)["verdicts.json"])[-1]["results"]
    assert (rule["name"], rule["passed"], rule["failing_rows"]) == ("range sales", False, 4)
    assert {sample["shop"] for sample in rule["samples"]} == {"***"}
    told = control.witnesses("revenue", made.run_id, found.published)
    events = control.logs(made.run_id)
    for witness, name in zip(told.versions, ("state.publishing", "state.undoing"), strict=True):
        event = events[int(witness.properties[WITNESS_NUMBER]) - 1]
        assert (event.sha256, event.name) == (witness.properties[WITNESS], name)
        assert event.account
    assert confirmed(archive, found, told)[2:] == ("it knows of no other publish or undo of this run",)
    for hiding in (staged, published):
        older = verify(hiding)
        with pytest.raises(NotVerified, match=rf"made version .*{undone.undo_version} of .* does not tell"):
            confirmed(hiding, older, control.witnesses("revenue", older.run_id, older.published))

    manifest = control.evidence(made.run_id).manifest
    with open_store(f"sqlite:///{tmp_path}/rewritten.db") as other:
        run = published_run(other, manifest, version=made.version)
        forged = bundle(attest(other.runs, run.run_id))
    assert verify(forged).run_id == made.run_id, "in itself it is sound"
    with pytest.raises(NotVerified, match="another history"):
        confirmed(forged, verify(forged), told.model_copy(update={"versions": told.versions[:1]}))
    with pytest.raises(Drifted):
        control.witnesses("revenue", made.run_id, ("123456789",))


def test_what_became_of_every_offset_of_a_topic_is_part_of_the_evidence(new_orders: Callable[..., Orders]) -> None:
    """Merged by offsets, without a window: evidence, explanation, page and lineage hold for it too."""
    orders = new_orders(partitions=2)
    orders.configure(pipeline="publish: {mode: merge}")
    orders.send([Order(number, FIRST + timedelta(hours=number)) for number in range(10)])
    control = orders.open()
    made = control.backfill(Request(pipeline="orders", offsets="earliest", reason="from the start"))
    evidence = control.evidence(made.run_id)
    files = unpacked(bundle(evidence))
    assert evidence.change.startswith("0 rows became 10 in the files that were written anew; nobody compared")
    proofs = json.loads(files["coverage.json"])
    assert sum(proof["data"]["handed_over"] for proof in proofs) == 10
    assert verify(bundle(evidence)).published == (made.version,)
    (read,) = json.loads(files["openlineage.json"])[-1]["inputs"]
    assert (read["namespace"], read["name"]) == ("kafka", orders.topic)
    assert read["facets"]["version"]["datasetVersion"].startswith("0=0.."), "the version of a topic is its offsets"
    (piece,) = control.explain("orders_by_day", partition="2026-01").seen
    assert (piece.run_id, piece.beside) == (None, (made.run_id,)), "it added to what is there, and replaced nothing"
    assert "10 rows" in run_page(evidence)
    (told,) = control.witnesses("orders_by_day", made.run_id, (made.version,)).versions
    assert told.properties["backcast.inputs"].startswith(f"kafka:{orders.topic}@0=0..")
