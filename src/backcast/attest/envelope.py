"""A signed statement as DSSE writes it: the payload, its type, and signatures over both."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from backcast.attest.keys import PublicKey, SigningKey
from backcast.errors import NotVerified
from backcast.model.document import canonical
from backcast.model.evidence import Signature

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """DSSE's pre-authentication encoding: what is signed. Lengths keep type and payload from flowing together."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sealed(payload: bytes, key: SigningKey | None) -> bytes:
    """The envelope; without a key it has no signature, and says so by that."""
    signatures = [] if key is None else [{"keyid": key.public.id, "sig": _text(key.sign(pae(payload)))}]
    return canonical({"payload": _text(payload), "payloadType": PAYLOAD_TYPE, "signatures": signatures})


def opened(envelope: bytes, payload: bytes, key: PublicKey | None) -> tuple[Signature, str]:
    """What its signature is worth, and the id of the key that it names.

    Raises NotVerified when it is not an envelope of exactly that payload, or its signature does not fit the key.
    """
    document = _document(envelope)
    if _bytes(document["payload"]) != payload:
        raise NotVerified("the signed statement is not the one beside it", hint="statement.json was changed")
    signatures = document["signatures"]
    if not signatures:
        if key is not None:
            raise NotVerified(
                "the bundle is not signed, and a key was given",
                hint="ask for one that was made with `backcast evidence RUN --out FILE --key KEYFILE`",
            )
        return Signature.NONE, ""
    signed_with = str(signatures[0]["keyid"])
    if key is None:
        return Signature.UNCHECKED, signed_with
    if key.id != signed_with:
        raise NotVerified(
            f"signed with key {signed_with[:16]}, and the key that was given is {key.id[:16]}",
            hint="ask who signed it for the public key",
            signed_with=signed_with,
            given=key.id,
        )
    if not key.fits(_bytes(signatures[0]["sig"]), pae(payload)):
        raise NotVerified("the signature does not fit what was signed", hint="the bundle was changed", key=key.id)
    return Signature.VALID, signed_with


def _document(envelope: bytes) -> dict[str, Any]:
    """In the only form that we write; another spelling of the same was changed by another hand."""
    try:
        document = json.loads(envelope)
        expected = {
            "payload": str(document["payload"]),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": str(each["keyid"]), "sig": str(each["sig"])} for each in document["signatures"]],
        }
        is_ours = canonical(expected) == envelope and len(expected["signatures"]) <= 1
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise NotVerified("statement.dsse.json is no envelope") from error
    if not is_ours:
        raise NotVerified("statement.dsse.json is not in the form that backcast writes")
    return expected


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise NotVerified("statement.dsse.json holds broken base64") from error
    if _text(data) != text:
        raise NotVerified("statement.dsse.json holds base64 in a second spelling")
    return data
