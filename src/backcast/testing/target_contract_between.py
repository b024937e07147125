"""What the owner of a table may do between the stage and the publish."""

from __future__ import annotations

from backcast.testing.target_contract_publish import lands_or_again
from backcast.testing.target_lab import Ability, Lab
from backcast.testing.target_moves import days, decided, multiplied, publish, restated
from backcast.testing.target_suite import TargetSuite, metadata_only


class BetweenContract(TargetSuite):
    """Compaction, expiry, and changes of schema, partitioning and properties."""

    def test_compaction_of_the_scope_is_told_apart_from_live_rows(self, lab: Lab) -> None:
        """After compaction alone the head's files are removed instead; one that swallowed a live row is not
        compaction.
        """
        table = lab.three_days(split=True)
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        table.compact()
        table.append((900, 2, 1.0))
        moved = target.movement(net.base, scope)
        assert moved.moved
        assert moved.only_compaction
        assert (len(moved.added), len(moved.removed)) == (1, 2)
        assert [(each.added, each.removed) for each in moved.commits] == [(1, 2)]
        with metadata_only(table):
            publish(target, net, scope)
        assert table.values() == sorted([*multiplied(before, 1, 1), (900, 2, 1.0)])

        base = target.facts().version
        table.append((901, 1, 1.0))
        table.compact(1)
        swallowed = target.movement(base, scope)
        assert swallowed.moved
        assert not swallowed.only_compaction
        assert len(swallowed.commits) == 2

    def test_compaction_elsewhere_is_no_movement(self, lab: Lab) -> None:
        table = lab.three_days(split=True)
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        change = decided(target, net, scope)
        table.compact(2)
        assert not target.movement(net.base, scope).moved
        target.commit(change)
        assert table.values() == multiplied(before, 1, 1)

    def test_expiry_takes_neither_the_stage_nor_the_publish_away(self, lab: Lab) -> None:
        """In each of the ways of the format; the history that was expired explains nothing away."""
        for how in lab.three_days().expiries:
            table = lab.three_days()
            target, before, scope = table.target(), table.values(), days(1, 1)
            stage, net = restated(target, scope)
            for number in (900, 901):
                table.append((number, 2, 1.0))
            table.expire(how)
            assert target.net_change(stage, net.staged, scope).digest() == net.digest()
            assert target.missing(frozenset(f.path for f in (*net.added, *net.removed))) == frozenset()
            assert not target.movement(net.base, scope).moved
            elsewhere = target.movement(net.base, days(2, 2))
            assert len(elsewhere.added) == 2
            assert not elsewhere.only_compaction
            with metadata_only(table):
                publish(target, net, scope)
            assert table.values() == sorted([*multiplied(before, 1, 1), (900, 2, 1.0), (901, 2, 1.0)])

    def test_a_change_of_schema_shows_in_the_identity_of_the_table(self, lab: Lab) -> None:
        """The flow refuses then; should it not, rows of the stage still read, with nothing in the new column."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        identity = target.facts().identity
        _, net = restated(target, scope)
        table.add_column("note")
        moved = target.facts().identity
        assert moved.uuid == identity.uuid
        assert moved.columns == (*identity.columns, moved.columns[-1])
        assert moved.columns[-1].name == "note"
        with metadata_only(table):
            publish(target, net, scope)
        assert table.values() == multiplied(before, 1, 1)
        assert {row[3] for row in table.rows()} == {None}

    def test_a_change_of_partitioning_shows_in_the_identity_of_the_table(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        identity = target.facts().identity
        assert [(f.source, f.transform, f.name) for f in identity.partition_fields] == [("day", "identity", "day")]
        given = lab.capability(Ability.SPEC_CHANGES).given
        _, net = restated(target, scope)
        if given:
            table.change_spec()
        assert (target.facts().identity != identity) == given
        assert (target.facts().identity.partition_fields != identity.partition_fields) == given
        with metadata_only(table):
            publish(target, net, scope)
        assert table.values() == multiplied(before, 1, 1)

    def test_a_property_set_in_between_changes_neither_the_identity_nor_the_outcome(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        identity = target.facts().identity
        _, net = restated(target, scope)
        change = decided(target, net, scope)
        table.set_property("owner.note", "checked")
        assert target.facts().identity == identity
        assert target.facts().properties["owner.note"] == "checked"
        lands_or_again(lab, Ability.PROPERTIES_PASS, table, target, change, lambda: decided(target, net, scope))
        assert table.properties()["owner.note"] == "checked"
        assert table.values() == multiplied(before, 1, 1)
