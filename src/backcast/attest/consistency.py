"""What must hold between the documents of one run. Each check raises NotVerified or says in a sentence what holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from backcast.attest.agreed import counting
from backcast.errors import NotVerified
from backcast.model.document import canonical, sha256
from backcast.model.evidence import APPROVALS, DIFFED, NOTE, PUBLICATION, VERDICT
from backcast.model.need import unfilled
from backcast.model.proof import COVERED
from backcast.model.words import many

_Document = dict[str, Any]
_Person = tuple[Any, Any]
"""A name, and the role in which somebody spoke."""
_ASKED = ("pipeline", "kind", "reason", "ticket", "requested_by")


@dataclass(frozen=True)
class Record:
    """The documents of a bundle as plain values."""

    files: Mapping[str, bytes]

    @cached_property
    def run(self) -> _Document:
        return _object(json.loads(self.files["run.json"]))

    @cached_property
    def manifest(self) -> _Document:
        return _object(json.loads(self.files["manifest.json"]))

    @cached_property
    def events(self) -> list[_Document]:
        return [_object(json.loads(line)) for line in self.files["events.jsonl"].splitlines()]

    def several(self, name: str) -> list[_Document]:
        return [_object(each) for each in json.loads(self.files[name])]

    def named(self, *names: str) -> list[_Document]:
        return [event for event in self.events if event["name"] in names]


def checked(files: Mapping[str, bytes]) -> tuple[str, ...]:
    record = Record(files)
    return tuple(check(record) for check in _CHECKS)


def _history(record: Record) -> str:
    """Numbered without gap, each bound to the one before, each in its canonical form."""
    previous = ""
    lines = record.files["events.jsonl"].splitlines()
    for number, line in enumerate(lines, start=1):
        event = record.events[number - 1]
        bare = {key: value for key, value in event.items() if key != "sha256"}
        genuine = event["sha256"] == sha256(canonical(bare)) and line == canonical(event)
        placed = (event["number"], event["previous"], event["run_id"]) == (number, previous, record.run["run_id"])
        if not genuine or not placed:
            raise NotVerified(f"event {number} was changed, removed or added by another hand", event=number)
        previous = event["sha256"]
    if not lines:
        raise NotVerified("the run has no history")
    return f"{many(len(lines), 'event')}, chained without a gap"


def _plan(record: Record) -> str:
    run_id, digest = record.run["run_id"], sha256(record.files["manifest.json"])
    planned = record.events[0]
    if digest != record.run["manifest_sha256"] or not str(run_id).endswith(digest[:6]):
        raise NotVerified("manifest.json is not the plan of this run")
    if (planned["name"], planned["data"]["manifest"]) != ("state.planned", digest):
        raise NotVerified("the history begins with another plan")
    target = record.manifest["target"]
    if (record.run["table"], record.run["dataset"]) != (target["identity"]["name"], target["dataset"]):
        raise NotVerified("run.json names another table than the plan")
    asked = {"pipeline": record.manifest["pipeline"], **record.manifest["request"]}
    if any(record.run[key] != asked[key] for key in _ASKED if key in asked):
        raise NotVerified("run.json tells another request than the plan")
    return f"the plan is the one that was recorded first, {digest[:12]}"


def _states(record: Record) -> str:
    """Each change of state begins where the one before ended, and the last one is where the run stands."""
    moves = [event for event in record.events if str(event["name"]).startswith("state.")]
    for before, after in pairwise(moves):
        if after["data"]["from"] != before["data"]["to"]:
            raise NotVerified(f"event {after['number']} begins in a state in which the run was not")
    if any(move["name"] != f"state.{move['data']['to']}" for move in moves):
        raise NotVerified("an event has another name than the state that it tells")
    last = moves[-1]["data"]
    if last["to"] != record.run["state"] or last.get("detail", record.run["detail"]) != record.run["detail"]:
        raise NotVerified("run.json tells another state than the history")
    by = [event["data"].get("by") for event in record.named("run.superseded")]
    if record.run["superseded_by"] != (by[-1] if by else None):
        raise NotVerified("run.json tells of another successor than the history")
    return f"{many(len(moves), 'change')} of state, none left out; now {record.run['state']}"


def _ledger(record: Record) -> str:
    """The chunks are those of the plan; once all were staged, they hold as many rows as the history says."""
    chunks = record.several("chunks.json")
    if [each["chunk_id"] for each in chunks] != [each["id"] for each in record.manifest["chunks"]]:
        raise NotVerified("chunks.json does not hold the chunks of the plan")
    told = [event["data"] for event in record.named("state.running", "state.staged") if _moves_chunks(event)]
    if not told or told[-1].get("rows") is None:
        return f"{many(len(chunks), 'chunk')}, those of the plan"
    if any(each["state"] != "staged" for each in chunks):
        raise NotVerified("chunks.json tells of a chunk that was not staged, and the history of a complete stage")
    rows = sum(each["output_rows"] or 0 for each in chunks)
    if rows != told[-1]["rows"]:
        raise NotVerified(f"the chunks hold {rows} rows, and the history tells of {told[-1]['rows']}")
    return f"{many(len(chunks), 'chunk')}, those of the plan, with {many(rows, 'row')} as the history tells"


def _moves_chunks(event: _Document) -> bool:
    """Chunks are computed from here on, or all of them are: only the latter tells rows."""
    return bool(event["name"] == "state.running" or event["data"]["from"] == "running")


def _approvals(record: Record) -> str:
    """Bound to this plan; and where it asks for roles, each had agreed when the run started and was published."""
    digest = record.run["manifest_sha256"]
    words = [event for event in record.events if str(event["name"]).startswith(APPROVALS)]
    if any(event["data"].get("manifest") != digest for event in words):
        raise NotVerified("an approval is bound to another plan")
    need = record.manifest.get("approval") or {}
    asked = need.get("roles") or []
    for event in [*record.named("state.running")[:1], *record.named("state.publishing")]:
        did = "started" if event["name"] == "state.running" else "was published"
        before = [word for word in words if word["number"] < event["number"]]
        refused = [word["data"]["by"] for word in before if word["name"] == f"{APPROVALS}refused"]
        if refused:
            raise NotVerified(f"the run {did} although {refused[0]} had rejected it")
        missing = unfilled(asked, counting(before, need, str(event["at"]))) if asked else ()
        if missing:
            raise NotVerified(f"the run {did} without the approval of {', '.join(missing)}")
    if not asked:
        return "the plan asks nobody for approval"
    return f"{many(len(words), 'word')} of approval, bound to the plan; asked for: {', '.join(asked)}"


def _code(record: Record) -> str:
    """What computed the result is what the plan says, and the digests are those of what they name."""
    planned, told = record.manifest["code"], _object(json.loads(record.files["code.json"]))
    same = all(told.get(_TOLD_AS.get(key, key)) == value for key, value in planned.items())
    settings = record.manifest["settings"].get("spark")
    digests = all(told[f"{key}_sha256"] == sha256(canonical(planned[key])) for key in ("files", "packages"))
    if not same or not digests or told["spark"] != settings:
        raise NotVerified("code.json tells of other code, packages or settings than the plan")
    return f"the code is that of the plan, {planned['transform']} {planned['version']}"


_TOLD_AS = {"config": "config_sha256"}


def _extracts(record: Record) -> str:
    """Files that repeat events of one kind have all of them, and nothing else."""
    kinds: dict[str, Callable[[str], bool]] = {
        "approvals.json": lambda name: name.startswith(APPROVALS),
        "coverage.json": lambda name: name == COVERED,
        "diff.json": lambda name: name == DIFFED,
        "notes.json": lambda name: name == NOTE,
    }
    for file, belongs in kinds.items():
        wanted = [event for event in record.events if belongs(str(event["name"]))]
        found = record.several(file) if file in record.files else []
        if found != wanted:
            raise NotVerified(f"{file} does not hold what the history tells")
    return "approvals, coverage, diffs and notes are those of the history"


def _documents(record: Record) -> str:
    """Verdicts and publications have the hashes that the history holds. A run of an earlier release has none there."""
    bound = 0
    told = [event["data"]["document"] for event in record.named(VERDICT)]
    found = [sha256(canonical(each)) for each in record.several("verdicts.json")]
    if told:
        if told != found[-len(told) :]:
            raise NotVerified("verdicts.json does not hold the verdicts that the history tells")
        bound += len(told)
    newest = {event["data"]["generation"]: event["data"]["document"] for event in record.named(PUBLICATION)}
    for each in record.several("publications.json"):
        wanted = newest.pop(each["generation"], None)
        if wanted is None:
            continue
        if sha256(canonical(each)) != wanted:
            raise NotVerified(f"publication {each['generation']} is not the one that the history tells")
        bound += 1
    if newest:
        raise NotVerified(f"publication {min(newest)} is missing")
    _change(record)
    return f"{many(bound, 'document')} of verdicts and publications bound by the history"


def _published(record: Record) -> str:
    """What was published is what was validated, and in the order that the history tells."""
    verdicts, publications = record.several("verdicts.json"), record.several("publications.json")
    if [each["generation"] for each in publications] != list(range(1, len(publications) + 1)):
        raise NotVerified("a publication is missing, or there twice")
    accepted = {_person(event["data"]) for event in record.named("state.accepted")}
    for each in publications:
        mine = [verdict for verdict in verdicts if _fits(verdict, each, accepted)]
        if not mine:
            raise NotVerified(f"version {each['version']} was published without an accepted verdict for it")
        if any(other["run_id"] != record.run["run_id"] for other in (each, *mine)):
            raise NotVerified("a publication, or its verdict, is of another run")
    done = [str(event["data"]["version"]) for event in record.events if _made_visible(event)]
    made = [str(each[key]) for each in publications for key in ("version", "undo_version") if each.get(key) is not None]
    under_way = record.run["state"] in ("publishing", "undoing")
    if made != done and not (under_way and made[: len(done)] == done):
        told, known = (", ".join(versions) or "none" for versions in (done, made))
        raise NotVerified(f"the history tells of versions {told}, not of {known}")
    return f"{many(len(publications), 'publication')}, each of exactly what was accepted"


def _made_visible(event: _Document) -> bool:
    """A change of state that a commit to the table brought about."""
    return event["name"] in ("state.published", "state.undone") and event["data"].get("version") is not None


def _fits(verdict: _Document, publication: _Document, accepted: Container[_Person]) -> bool:
    """An accepted verdict about exactly this stage: no blocking check failed, and where a gate asked somebody to look,
    the person who accepted it is one of those whom the history names.
    """
    same = (verdict["staged"], verdict["base"]) == (publication["staged"], publication["base"])
    failed = {check.get("consequence", "block") for check in verdict["checks"] if not check["passed"]}
    sound = bool(verdict["accepted"]) and same and "block" not in failed
    review = verdict.get("review")
    return sound and ("review" not in failed or (review is not None and _person(review) in accepted))


def _person(said: _Document) -> _Person:
    return said.get("by"), said.get("role")


def _object(value: Any) -> _Document:
    if not isinstance(value, dict):
        raise NotVerified("a document of the bundle is no object")
    return value


def _change(record: Record) -> None:
    """What changed is told as the newest verdict has it. A bundle of an earlier release does not tell it apart."""
    if "change.json" not in record.files:
        return
    told, verdicts = _object(json.loads(record.files["change.json"])), record.several("verdicts.json")
    newest = verdicts[-1] if verdicts else {}
    if any(told.get(name) != newest.get(name) for name in ("base", "staged", "change")):
        raise NotVerified("change.json does not hold what the newest verdict counted")


_CHECKS = (_history, _plan, _code, _states, _ledger, _approvals, _extracts, _documents, _published)
