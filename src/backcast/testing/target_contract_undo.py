"""Undo: the inverse change. Old rows come back, rows written since stay, and what cannot be taken back is refused."""

from __future__ import annotations

from collections.abc import Callable

from backcast.errors import Conflict, OutcomeUnknown, Refused, StateConflict
from backcast.testing.target_contract_publish import lands_or_again
from backcast.testing.target_lab import Ability, Lab, Writer, plain_shape
from backcast.testing.target_moves import day_of, days, inverse, multiplied, publish, restated, undo, where
from backcast.testing.target_suite import TargetSuite, metadata_only, refused

_BREAKING = [Writer.DELETE, Writer.UPDATE, Writer.MERGE, Writer.OVERWRITE, Writer.COMPACT]


class UndoContract(TargetSuite):
    """Alone, twice, and after others changed the published files."""

    def test_undo_keeps_live_rows_and_the_statistics_of_restored_files(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 2)
        first_day = target.files(target.facts().version, where("id", "0")).files
        assert len(first_day) == 1
        _, net = restated(target, scope)
        published = publish(target, net, scope)
        table.append((900, 1, 1.0), (901, 3, 1.0))
        with metadata_only(table):
            version = undo(target, net, scope)
        assert table.target().probe("undo-1") == version == target.facts().version
        assert table.values() == sorted([*before, (900, 1, 1.0), (901, 3, 1.0)])
        assert (target.files(version, where("id", "0")).files == first_day) == lab.capability(Ability.SWAPS_FILES).given
        assert sum(table.rows_at(published).values()) == len(before)
        assert target.missing(frozenset(f.path for f in (*net.added, *net.removed))) == frozenset()
        gone = net.added[0].path + ".gone"
        assert target.missing(frozenset({gone, net.added[0].path})) == {gone}

    def test_a_second_undo_is_refused_by_the_fence_and_by_the_files(self, lab: Lab) -> None:
        """Neither the same fence nor another one can double the old rows."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        publish(target, net, scope)
        undo(target, net, scope)
        with refused(table, StateConflict):
            undo(target, net, scope)
        with refused(table, Conflict, Refused, match="live"):
            undo(target, net, scope, fence="undo-2")
        assert target.probe("undo-2") is None
        assert table.values() == before

    def test_what_was_undone_can_be_published_again_and_undone_again(self, lab: Lab) -> None:
        """Each time under a fence of its own. Where an undo writes data, the base's files are gone after it."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        versions = []
        for generation in (1, 2):
            with metadata_only(table):
                versions.append(publish(target, net, scope, fence=f"pub-{generation}"))
            assert table.values() == multiplied(before, 1, 1)
            with metadata_only(table):
                versions.append(undo(target, net, scope, fence=f"undo-{generation}", of=f"pub-{generation}"))
            assert table.values() == before
            if not lab.capability(Ability.SWAPS_FILES).given:
                with refused(table, Conflict, match="not live any more"):
                    publish(target, net, scope, fence="pub-2")
                return
        fences = ("pub-1", "undo-1", "pub-2", "undo-2")
        assert [target.probe(fence) for fence in fences] == versions
        assert len(set(versions)) == 4

    def test_an_undo_after_published_files_were_rewritten_lands_nothing(self, lab: Lab) -> None:
        """It would double rows that were compacted and bring back rows that were deleted.

        Whether the writer comes before the decision to undo or after it, each on a day of its own.
        """
        table = lab.week()
        target, scope = table.target(), days(1, 7)
        _, net = restated(target, scope)
        publish(target, net, scope)
        # A compaction needs a second file.
        table.append((950, len(_BREAKING), 1.0))
        for day, writer in enumerate(_BREAKING, start=1):
            mine, fence = day_of(net, day), f"undo-{day}"
            change = inverse(target, mine, days(day, day), fence=fence)
            table.somebody(writer, day, plain_shape(present=day, absent=900))
            with refused(table, Conflict):
                target.commit(change)
            with refused(table, Conflict, match="not live any more"):
                undo(target, mine, days(day, day), fence=fence)
            assert target.probe(fence) is None, writer

    def test_rows_that_arrive_after_the_decision_to_undo_stay(self, lab: Lab) -> None:
        """In scope: at worst the undo is decided again. Elsewhere: no conflict."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        publish(target, net, scope)
        change = inverse(target, net, scope)
        table.append((900, 3, 1.0))
        table.append((901, 1, 1.0))
        lands_or_again(lab, Ability.UNDO_IGNORES_ARRIVALS, table, target, change, lambda: inverse(target, net, scope))
        assert table.values() == sorted([*before, (900, 3, 1.0), (901, 1, 1.0)])

    def test_expiry_before_an_undo_takes_nothing_away_that_is_not_missed(self, lab: Lab) -> None:
        """Where the owner's expiry takes replaced files, `missing` names them: the flow refuses for that reason."""
        given = lab.capability(Ability.PINS_SURVIVE).given
        for how in lab.three_days().expiries:
            table = lab.three_days()
            target, before, scope = table.target(), table.values(), days(1, 1)
            _, net = restated(target, scope)
            publish(target, net, scope)
            table.append((900, 1, 1.0))
            table.expire(how)
            replaced = frozenset(f.path for f in net.removed)
            assert target.missing(replaced) == (frozenset() if given else replaced)
            assert table.values() == sorted([*multiplied(before, 1, 1), (900, 1, 1.0)])
            if given:
                undo(target, net, scope)
                table.expire(how)
                assert table.values() == sorted([*before, (900, 1, 1.0)])

    def test_undo_after_a_change_of_schema_and_of_a_property(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        publish(target, net, scope)
        table.add_column("note")
        table.set_property("owner.note", "checked")
        with metadata_only(table):
            undo(target, net, scope)
        assert table.values() == before
        assert {row[3] for row in table.rows()} == {None}


class LostAnswerContract(TargetSuite):
    """A commit that landed and whose maker got an error. An adapter may see through it; it may never deny it."""

    def test_a_publish_whose_answer_was_lost_is_never_taken_for_not_landed(self, lab: Lab) -> None:
        """It is known or unknown to have landed, the fence tells, the table reads, and a repeat lands nothing."""
        for place in lab.create().lost_answers:
            table = lab.three_days()
            target, before, scope = table.target(), table.values(), days(1, 1)
            _, net = restated(target, scope)
            with table.lost_answer(place):
                heard = told(lambda: publish(target, net, scope))  # noqa: B023 - called at once
            landed = table.target().probe("pub-1")
            assert landed is not None
            assert heard in (landed, UNKNOWN), place
            assert table.values() == multiplied(before, 1, 1)
            assert table.rows_at(landed) == table.rows()
            with refused(table, StateConflict):
                publish(table.target(), net, scope)

    def test_an_undo_whose_answer_was_lost_is_never_taken_for_not_landed(self, lab: Lab) -> None:
        for place in lab.create().lost_answers:
            table = lab.three_days()
            target, before, scope = table.target(), table.values(), days(1, 1)
            _, net = restated(target, scope)
            publish(target, net, scope)
            with table.lost_answer(place):
                heard = told(lambda: undo(target, net, scope))  # noqa: B023 - called at once
            landed = table.target().probe("undo-1")
            assert landed is not None
            assert heard in (landed, UNKNOWN), place
            assert table.values() == before


UNKNOWN = "nobody knows"


def told(commit: Callable[[], str]) -> str:
    """What the maker of a commit hears."""
    try:
        return commit()
    except OutcomeUnknown:
        return UNKNOWN
