"""Ed25519 keys as PEM text. A private key is handed in, used and forgotten: never kept, never shown."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from backcast.errors import InvalidRequest
from backcast.model.document import sha256

_HINT = "make a pair with: backcast keys new --out DIR"


class SigningKey:
    """A private key. Its text form has no secret in it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    @classmethod
    def read(cls, pem: bytes, where: str) -> SigningKey:
        """From PKCS #8 without password. Raises InvalidRequest, which never repeats what it was given."""
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (TypeError, ValueError, UnsupportedAlgorithm):
            # Without its cause, which may repeat some of the key.
            raise InvalidRequest(f"{where} holds no private key in PEM form without password", hint=_HINT) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidRequest(f"{where} holds a private key of another kind than Ed25519", hint=_HINT)
        return cls(key)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.public.id[:12]})"


class PublicKey:
    """What signatures are checked with."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id = sha256(der)
        """SHA-256 of the key in DER form: who was meant, for people; it proves nothing."""

    @classmethod
    def read(cls, pem: bytes, where: str) -> PublicKey:
        """From a SubjectPublicKeyInfo. Raises InvalidRequest; a private key is refused too: it has no place here."""
        try:
            key = serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidRequest(
                f"{where} holds no public key in PEM form", hint="give the file that ends in .pub"
            ) from None
        if not isinstance(key, Ed25519PublicKey):
            raise InvalidRequest(f"{where} holds a public key of another kind than Ed25519", hint=_HINT)
        return cls(key)

    def fits(self, signature: bytes, message: bytes) -> bool:
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def new_pair() -> tuple[bytes, bytes]:
    """A private and a public key, both PEM."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private, public
