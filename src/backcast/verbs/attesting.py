"""Verbs that tell what is on record about runs. All but `witnesses` need neither Spark nor user code."""

from __future__ import annotations

from backcast.attest.explain import explain, moment_of, window_of
from backcast.attest.step import attest
from backcast.errors import InvalidRequest, NotVerified, UnknownName
from backcast.model.evidence import NOTE, Evidence, Note, Witness, Witnesses
from backcast.model.explanation import Explanation
from backcast.model.scope import TimeClause
from backcast.model.stage import publish_fence, undo_fence
from backcast.spark.gateway import jvm_errors
from backcast.verbs.themed import Verbs


class AttestingVerbs(Verbs):
    def evidence(self, run_id: str) -> Evidence:
        """Everything on record about the run, as one document.

        Raises NotVerified when the history is not whole: its last events may be gone, which nobody outside could tell.
        """
        reader = self.world.reader()
        if (broken := reader.verify_events(run_id)) is not None:
            raise NotVerified(f"event {broken} was changed, removed or added by another hand", event=broken)
        return attest(reader, run_id)

    def note(self, run_id: str, text: str) -> Note:
        """Add a sentence to the run's history. It stays there: nothing is ever taken out."""
        if not text.strip():
            raise InvalidRequest("a note needs words", hint='backcast note RUN "what happened since"')
        run = self.world.reader().run(run_id)
        runs = self.world.store().runs
        runs.record(run.run_id, NOTE, text=text.strip())
        event = next(each for each in reversed(runs.events(run.run_id)) if each.name == NOTE)
        return Note(run_id=run.run_id, number=event.number, text=str(event.data["text"]), account=event.account)

    def explain(self, dataset: str, *, partition: str | None = None, at: str | None = None) -> Explanation:
        """Why a year, month, day or hour of a dataset, or the moment given, is as it is."""
        reader = self.world.reader()
        zone = self._zone(dataset)
        if (partition is None) == (at is None):
            raise InvalidRequest("which part of the dataset?", hint="--partition 2025-04, or --at 2025-04-17T05:00Z")
        window = window_of(partition, zone) if partition is not None else moment_of(str(at), zone)
        return explain(reader, dataset, str(partition or at), window, zone)

    def _zone(self, dataset: str) -> str:
        """Of the dataset's time; of one that is no longer declared, as the newest plan on record has it."""
        try:
            return self.world.dataset(dataset).time.zone
        except UnknownName:
            reader = self.world.reader()
            runs = reader.runs(dataset=dataset, limit=1)
            if not runs:
                raise
            clauses = reader.manifest(runs[0].run_id).scope.predicate.clauses
            return next((clause.time.zone for clause in clauses if isinstance(clause, TimeClause)), "UTC")

    @jvm_errors("asking the table")
    def witnesses(self, dataset: str, run_id: str, versions: tuple[str, ...]) -> Witnesses:
        """What the commits of these versions of a dataset's table say about themselves, and which others the run made.

        Raises Drifted when the table no longer has one of them.
        """
        target = self.world.target(dataset)
        identity = target.facts().identity
        told = tuple(Witness(version=version, properties=target.properties(version)) for version in versions)
        # Each publish has two fences at most, so this is one more than there can be.
        generations = range(1, len(versions) + 2)
        fences = [fence(run_id, number) for number in generations for fence in (publish_fence, undo_fence)]
        made = [version for each in fences if (version := target.probe(each)) is not None]
        others = tuple(version for version in made if version not in versions)
        return Witnesses(table=identity.name, uuid=identity.uuid, versions=told, others=others)
