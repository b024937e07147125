"""A bundle holds everything on record, is the same every time, and can be checked with nothing but its file."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from backcast.attest.archive import packed, unpacked
from backcast.attest.bundle import bundle, contents
from backcast.attest.keys import PublicKey, SigningKey, new_pair
from backcast.attest.statement import ENVELOPE, STATEMENT
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.errors import InvalidRequest, NotVerified
from backcast.model.document import canonical, sha256
from backcast.model.evidence import Evidence, Signature
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import published_run, undone_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db", account="ana@host-1") as store:
        yield store


@pytest.fixture
def evidence(store: SqlStore) -> Evidence:
    run = undone_run(store)
    store.runs.record(run.run_id, "note", text="the report was sent again")
    return attest(store.runs, run.run_id)


PRIVATE, PUBLIC = new_pair()
KEY, PUB = SigningKey.read(PRIVATE, "a test"), PublicKey.read(PUBLIC, "a test")


def test_the_same_record_gives_the_same_bytes(store: SqlStore, evidence: Evidence) -> None:
    again = attest(store.runs, evidence.run.run_id)
    assert bundle(again, KEY) == bundle(evidence, KEY)


def test_a_bundle_is_a_plain_zip_with_everything_in_it(evidence: Evidence) -> None:
    with zipfile.ZipFile(io.BytesIO(bundle(evidence, KEY))) as opened:
        assert opened.testzip() is None
        names = opened.namelist()
        assert names == sorted(names)
        assert sha256(opened.read("manifest.json")) == evidence.run.manifest_sha256
        assert [json.loads(line)["name"] for line in opened.read("events.jsonl").splitlines()] == [
            event.name for event in evidence.events
        ]
        assert [note["data"]["text"] for note in json.loads(opened.read("notes.json"))] == ["the report was sent again"]
        assert len(json.loads(opened.read("chunks.json"))) == 3
        (made,) = json.loads(opened.read("publications.json"))
        assert (made["version"], made["undo_version"]) == ("81", "819")
        assert len(json.loads(opened.read("timings.json"))["jobs"]) == 3
        assert json.loads(opened.read("code.json"))["packages"] == {"pyspark": "4.0.5"}


def test_the_statement_is_an_in_toto_statement_about_every_file_and_the_table(evidence: Evidence) -> None:
    files = unpacked(bundle(evidence, KEY))
    said = json.loads(files[STATEMENT])
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "urn:backcast:evidence:v1"
    digests = {each["name"]: each["digest"]["sha256"] for each in said["subject"]}
    about = files.keys() - {STATEMENT, ENVELOPE}
    assert {name: digests.pop(name) for name in about} == {name: sha256(files[name]) for name in about}
    assert digests == {"lake.db.orders": "3" * 64}, "the published change, by the digest of its files"
    assert said["predicate"]["events"] == {"number": len(evidence.events), "head": evidence.events[-1].sha256}


def test_a_signed_bundle_is_verified_with_the_right_key_only(evidence: Evidence) -> None:
    archive = bundle(evidence, KEY)
    found = verify(archive, PUB)
    assert (found.signature, found.signed_with) == (Signature.VALID, PUB.id)
    assert (found.state, found.published, found.head) == ("undone", ("81", "819"), evidence.events[-1].sha256)
    assert verify(archive).signature is Signature.UNCHECKED
    stranger = PublicKey.read(new_pair()[1], "another")
    with pytest.raises(NotVerified, match=PUB.id[:16]) as refused:
        verify(archive, stranger)
    assert refused.value.exit_code == 3


def test_an_unsigned_bundle_says_so_and_no_key_fits_it(evidence: Evidence) -> None:
    archive = bundle(evidence)
    assert verify(archive).signature is Signature.NONE
    with pytest.raises(NotVerified, match="not signed"):
        verify(archive, PUB)


def test_openssl_and_the_instructions_in_the_bundle_come_to_the_same_result(evidence: Evidence, tmp_path: Path) -> None:
    """What README.txt says can be done by hand is done, word for word."""
    files = unpacked(bundle(evidence, KEY))
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "key.pub").write_bytes(PUBLIC)
    text = files["README.txt"].decode()
    scripts = [dedent(part.partition("\n     END")[0]) for part in text.split("<<'END'\n")[1:]]
    assert len(scripts) == 2
    told = [
        subprocess.run(["python3", "-c", each], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for each in scripts
    ]
    assert told[1].strip() == evidence.events[-1].sha256
    line = next(each for each in text.splitlines() if "openssl" in each).replace("PUBLIC_KEY", "key.pub")
    checked = subprocess.run(line.split(), cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "Verified Successfully" in checked.stdout


def test_no_file_and_no_message_holds_the_private_key(evidence: Evidence) -> None:
    secret = PRIVATE.decode().splitlines()[1]
    archive = bundle(evidence, KEY)
    assert secret.encode() not in archive
    assert secret not in repr(KEY)
    with pytest.raises(InvalidRequest) as refused:
        SigningKey.read(PRIVATE.replace(b"MC4", b"XX4"), "the file")
    assert secret[4:] not in str(refused.value.as_dict())
    with pytest.raises(InvalidRequest, match="no public key"):
        PublicKey.read(PRIVATE, "the file")


def test_a_run_that_was_never_published_has_evidence_too(store: SqlStore) -> None:
    from backcast.testing.samples import sample_manifest

    run = store.runs.create(sample_manifest(reason="only planned"))
    found = verify(bundle(attest(store.runs, run.run_id), KEY), PUB)
    assert (found.state, found.published) == ("planned", ())


def test_a_store_that_was_changed_by_another_hand_gives_no_evidence(store: SqlStore) -> None:
    """The contradiction is found before anything is signed."""
    evidence = attest(store.runs, published_run(store).run_id)
    verdict = evidence.verdicts[0].model_copy(update={"rows": 901})
    with pytest.raises(NotVerified, match=r"verdicts\.json"):
        bundle(evidence.model_copy(update={"verdicts": (verdict,)}), KEY)
    made = evidence.publications[0].model_copy(update={"version": "82"})
    with pytest.raises(NotVerified, match="publication 1"):
        bundle(evidence.model_copy(update={"publications": (made,)}), KEY)
    changed = evidence.events[3].model_copy(update={"account": "bob@host-1"})
    events = (*evidence.events[:3], changed, *evidence.events[4:])
    with pytest.raises(NotVerified, match="event 4"):
        bundle(evidence.model_copy(update={"events": events}), KEY)
    with pytest.raises(NotVerified, match="publication 1 is missing"):
        bundle(evidence.model_copy(update={"publications": ()}), KEY)


def test_whoever_holds_a_key_cannot_make_contradictions_pass(evidence: Evidence) -> None:
    """Files that do not fit each other are refused, however well they are signed."""
    from backcast.attest.envelope import sealed
    from backcast.attest.statement import statement

    def forged(**changed: bytes) -> bytes:
        files = {**contents(evidence), **{name.replace("_", "."): data for name, data in changed.items()}}
        payload = statement(files)
        return packed({**files, STATEMENT: payload, ENVELOPE: sealed(payload, KEY)})

    assert verify(forged(), PUB).signature is Signature.VALID
    run = evidence.run.as_json()
    for lie, reason in (
        (forged(run_json=canonical({**run, "state": "published"})), "another state"),
        (forged(run_json=canonical({**run, "table": "lake.db.other"})), "another table"),
        (forged(notes_json=b"[]"), "notes.json"),
        (forged(change_json=contents(evidence)["change.json"].replace(b'"staged":"', b'"staged":"7')), "change.json"),
        (forged(approvals_json=canonical([evidence.events[0].as_json()])), "approvals.json"),
        (forged(verdicts_json=b"[]"), "verdicts.json"),
        (forged(code_json=contents(evidence)["code.json"].replace(b"4.0.5", b"4.0.4")), "other code"),
        (forged(code_json=contents(evidence)["code.json"].replace(b"0000", b"0001", 1)), "other code"),
        (forged(run_json=b'{"state":"published",' + contents(evidence)["run.json"][1:]), "run.json is not in the form"),
        (forged(**{"../run_json": b"{}"}), "would not stay in its folder"),
        (forged(manifest_json=evidence.manifest.canonical().replace(b"time zone", b"zone time")), "not the plan"),
    ):
        with pytest.raises(NotVerified, match=reason):
            verify(lie, PUB)
