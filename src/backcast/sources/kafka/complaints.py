"""What Kafka's client says when something fails, in the product's words and without secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backcast.errors import Unavailable
from backcast.model.masking import without_secrets

if TYPE_CHECKING:
    from backcast.model.source import KafkaAccess

_MASK = "***"
_SECRET = ("password", "secret", "token", "key", "pem", "jaas", "oauthbearer", "username")
_ACCESS = {
    "_AUTHENTICATION",
    "_SSL",
    "ILLEGAL_SASL_STATE",
    "SASL_AUTHENTICATION_FAILED",
    "UNSUPPORTED_SASL_MECHANISM",
}
_RIGHTS = {"CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"}
_REACH = {
    "_ALL_BROKERS_DOWN",
    "_RESOLVE",
    "_TIMED_OUT",
    "_TRANSPORT",
    "BROKER_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
}
_PASSING = {
    "FENCED_LEADER_EPOCH",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REPLICA_NOT_AVAILABLE",
    "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_OR_PART",
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One of the client's errors: its name in librdkafka (its own begin with `_`), and its sentence."""

    name: str
    sentence: str

    @staticmethod
    def of(error: Any) -> Complaint:
        """Of a KafkaError, or of a KafkaException around one."""
        inner = error.args[0] if isinstance(error, BaseException) and error.args else error
        return Complaint(inner.name(), inner.str()) if hasattr(inner, "name") else Complaint("", str(inner))

    @property
    def about_access(self) -> bool:
        """Waiting does not help: who asks is not who they say, or says it in the wrong way."""
        return self.name in _ACCESS

    @property
    def about_rights(self) -> bool:
        """Who asks is known and may not."""
        return self.name in _RIGHTS

    @property
    def about_reaching(self) -> bool:
        return self.name in _REACH

    @property
    def passing(self) -> bool:
        """About a topic that is there, from a broker that does not know it yet, or no longer leads it."""
        return self.name in _PASSING


SILENCE = Complaint("_TIMED_OUT", "no answer in time")


def failed(complaint: Complaint, access: KafkaAccess, doing: str) -> Unavailable:
    """The error to raise for what the client said; `doing` ends the sentence "while ..."."""
    if complaint.about_access:
        what = "refuses this user or its password"
        hint = "check user, password and security options of the source in backcast.yaml"
    elif complaint.about_rights:
        what = "does not allow this user what it needs"
        hint = "let it DESCRIBE, DESCRIBE_CONFIGS and READ the topic"
    elif complaint.about_reaching:
        what = "cannot be reached"
        hint = "check that the brokers run, that `servers` names them, and that `security` is what they expect"
    else:
        what = "failed"
        hint = "repeat it; if it fails again, look at the brokers"
    said = told(f"{complaint.sentence} ({complaint.name})", access)
    return Unavailable(f"Kafka at {access.servers} {what}, while {doing}: {said}", hint=hint)


def told(words: str, access: KafkaAccess) -> str:
    """The client's own words, without any value of an option that may be secret."""
    secret = [value for name, value in access.client.items() if any(sign in name for sign in _SECRET)]
    for value in sorted(filter(None, secret), key=len, reverse=True):
        words = words.replace(value, _MASK)
    return without_secrets(" ".join(words.split()))
