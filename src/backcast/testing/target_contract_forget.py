"""Letting go of a run: nothing of it stays, every live row does, and what others do later cannot hurt."""

from __future__ import annotations

import pytest

from backcast.errors import StateConflict
from backcast.model.table import Forget
from backcast.testing.target_lab import Lab
from backcast.testing.target_moves import days, frame, multiplied, open_stage, publish, restated, undo, write
from backcast.testing.target_suite import TargetSuite, busy


class ForgetContract(TargetSuite):
    """Discarding a stage; forgetting what was published, and what was undone."""

    def test_a_discarded_stage_leaves_nothing_behind(self, lab: Lab) -> None:
        """Superseded files go too; a stage beside it stays; repeating it does nothing."""
        table = lab.three_days()
        target, rows, properties = table.target(), table.rows(), table.properties()
        other, net = restated(target, days(2, 2), "beside")
        traces, files = table.traces(), table.data_files()
        stage = open_stage(target)
        for token in (1, 2):
            write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 5.0)]), token=token)
        assert table.traces() > traces
        assert len(table.data_files()) == len(files) + 2
        wanted = Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch)
        assert target.forget(wanted) >= 2
        assert table.traces() == traces
        assert table.data_files() == files
        assert target.history(stage) == ()
        for exact in (False, True):
            with pytest.raises(StateConflict):
                write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 5.0)]), token=3, exact=exact)
        assert table.traces() == traces, "who outlived a cancelled run does not make its stage anew"
        assert table.target().forget(wanted) == 0
        assert (table.rows(), table.properties()) == (rows, properties)
        assert target.net_change(other, net.staged, days(2, 2)).digest() == net.digest()

    def test_a_discarded_run_can_be_staged_again(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        stage, _ = restated(target, scope)
        target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch))
        _, net = restated(target, scope)
        publish(target, net, scope)
        assert table.values() == multiplied(before, 1, 1)

    @pytest.mark.parametrize("taken_back", [False, True], ids=["published", "published and undone"])
    def test_what_others_do_after_forgetting_cannot_hurt(self, lab: Lab, taken_back: bool) -> None:
        """Expiry in every way of the format and compaction leave every row readable, and nothing of ours behind."""
        for how in lab.three_days().expiries:
            table = lab.three_days()
            target, scope = table.target(), days(1, 2)
            stage, net = restated(target, scope)
            table.append((900, 1, 1.0))
            versions, fences = [publish(target, net, scope, keep=True)], ["pub-1"]
            table.append((901, 1, 1.0))
            if taken_back:
                versions.append(undo(target, net, scope))
                fences.append("undo-1")
                table.append((902, 1, 1.0))
            expected, properties = table.values(), table.properties()

            forgotten = tuple(versions) if taken_back else ()
            target.forget(Forget(refs=(stage.base_tag, *fences), versions=forgotten, branch=stage.branch))
            assert table.values() == expected
            assert table.properties() == properties
            head = target.facts().version
            assert target.missing(target.files(head, days(1, 3)).paths) == frozenset()

            for number, day in ((903, 1), (904, 2)):
                table.append((number, day, 1.0))
            table.expire(how)
            table.compact()
            assert table.values() == sorted([*expected, (903, 1, 1.0), (904, 2, 1.0)])
            table.retire()
            target.sweep()
            assert table.traces() == set(), "what had to wait for the table's retention goes after it"
            assert table.values() == sorted([*expected, (903, 1, 1.0), (904, 2, 1.0)])

    def test_sweeping_spares_stages_that_nobody_has_forgotten(self, lab: Lab) -> None:
        """Whatever their age, and whosever they are: another project may work on the same table."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        table.retire()
        assert target.sweep() == 0
        publish(target, net, scope)
        assert target.sweep() == 0
        assert table.values() == multiplied(before, 1, 1)

    def test_forgetting_beside_a_busy_live_writer(self, lab: Lab) -> None:
        """Every live commit lands and stays; what was published stays readable."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        stage, net = restated(target, scope)
        publish(target, net, scope)
        with busy(table, day=1, most=8) as landed:
            target.forget(Forget(refs=(stage.base_tag, "pub-1"), versions=(), branch=stage.branch))
        arrived = [(number, 1, 0.0) for number in landed]
        assert table.values() == sorted([*multiplied(before, 1, 1), *arrived])
