"""Whatever is done to a bundle after it was made is found."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backcast.attest.archive import packed, unpacked
from backcast.attest.bundle import bundle
from backcast.attest.keys import PublicKey, SigningKey, new_pair
from backcast.attest.statement import ENVELOPE, STATEMENT
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.errors import NotVerified
from backcast.model.evidence import Signature
from backcast.store import open_store
from backcast.testing.lives import published_run
from backcast.testing.samples import sample_manifest

PRIVATE, PUBLIC = new_pair()
KEY, PUB = SigningKey.read(PRIVATE, "a test"), PublicKey.read(PUBLIC, "a test")


def _made(folder: Path, key: SigningKey | None) -> bytes:
    with open_store(f"sqlite:///{folder}/store.db") as store:
        run = published_run(store, sample_manifest(days=1))
        return bundle(attest(store.runs, run.run_id), key)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _made(tmp_path_factory.mktemp("signed"), KEY)


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _made(tmp_path_factory.mktemp("unsigned"), None)


def _refused(archive: bytes, key: PublicKey | None) -> bool:
    try:
        verify(archive, key)
    except NotVerified:
        return True
    return False


@pytest.mark.parametrize("kind", ["signed", "unsigned"])
def test_every_single_changed_byte_is_found(kind: str, request: pytest.FixtureRequest) -> None:
    """Each byte of the file in turn: headers, names, lengths, contents, the signature, the last byte."""
    archive: bytes = request.getfixturevalue(kind)
    key = PUB if kind == "signed" else None
    assert verify(archive, key).signature is (Signature.VALID if key else Signature.NONE)
    unnoticed = []
    for place in range(len(archive)):
        changed = bytearray(archive)
        changed[place] ^= 1 + place % 255
        if not _refused(bytes(changed), key):
            unnoticed.append(place)
    assert unnoticed == []


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_bytes_that_are_taken_out_put_in_or_moved_are_found(data: st.DataObject, signed: bytes) -> None:
    start = data.draw(st.integers(0, len(signed) - 1))
    end = data.draw(st.integers(start + 1, min(len(signed), start + 200)))
    more = data.draw(st.binary(min_size=1, max_size=20))
    for changed in (
        signed[:start] + signed[end:],
        signed[:start] + more + signed[start:],
        signed + more,
        more + signed,
    ):
        assert _refused(changed, PUB)


def test_members_that_come_go_or_change_their_order_are_found(signed: bytes) -> None:
    files = unpacked(signed)
    assert packed(files) == signed
    for name in files:
        rest = {each: data for each, data in files.items() if each != name}
        assert _refused(packed(rest), PUB), f"without {name}"
    assert _refused(packed({**files, "extra.txt": b""}), PUB)
    assert _refused(packed({**files, "README.txt": b"trust me"}), PUB)


def test_the_same_files_packed_by_another_tool_are_not_taken(signed: bytes) -> None:
    """Its headers could hold what nobody stated: a comment, an owner, a file that is hidden behind another."""
    files = unpacked(signed)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w", compression) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        assert _refused(other.getvalue(), PUB)


def test_a_signature_is_not_moved_to_another_bundle(signed: bytes, unsigned: bytes) -> None:
    mine, other = unpacked(signed), unpacked(unsigned)
    assert mine[STATEMENT] != other[STATEMENT], "two runs, made at two moments"
    assert _refused(packed({**other, ENVELOPE: mine[ENVELOPE]}), PUB)
    assert _refused(packed({**mine, ENVELOPE: other[ENVELOPE]}), PUB), "a signature was taken off"


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_would_fill_the_memory_is_not_unpacked(compression: int) -> None:
    """It claims to hold ten bytes and holds 200 million: whoever verifies a file of a stranger must survive it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive, archive.open("run.json", "w") as member:
        for _ in range(200):
            member.write(bytes(1_000_000))
    bomb = bytearray(made.getvalue())
    for place in (22, bomb.rfind(b"PK\x01\x02") + 24):
        bomb[place : place + 4] = (10).to_bytes(4, "little")
    tracemalloc.start()
    try:
        assert _refused(bytes(bomb), None)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [STATEMENT, ENVELOPE])
def test_json_that_is_nested_without_end_is_refused(name: str, unsigned: bytes) -> None:
    assert _refused(packed({**unpacked(unsigned), name: b"[" * 200_000}), None)


@pytest.mark.parametrize("junk", [b"", b"PK\x05\x06" + b"\0" * 18, b"not a zip at all", b"PK\x03\x04" * 1000])
def test_what_is_no_bundle_is_told_so(junk: bytes) -> None:
    with pytest.raises(NotVerified) as refused:
        verify(junk)
    assert refused.value.hint


def test_the_file_whose_bytes_were_changed_is_named(signed: bytes) -> None:
    place = signed.index(b'"reason"')
    wrong = signed[:place] + b'"Reason"' + signed[place + 8 :]
    with pytest.raises(NotVerified, match=r"by another hand: [\w.-]+ was changed"):
        unpacked(wrong)
