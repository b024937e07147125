"""Before rows are shown: every column that a dataset declares as masked is one of the table's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backcast.errors import UnknownName
from backcast.model.masked import not_among

if TYPE_CHECKING:
    from backcast.world import World


def require_masked(world: World, dataset: str, shown: Iterable[str]) -> None:
    """Raises UnknownName when one is neither shown nor in the table today: the one that was meant would be shown."""
    lacking = not_among(world.diff_rules(dataset).masked, shown)
    if not lacking:
        return
    columns = [column.name for column in world.source(dataset).facts().identity.columns]
    for name in not_among(lacking, columns):
        raise UnknownName(
            f"`masked` of dataset {dataset} names column {name!r}, which the table does not have",
            hint=f"correct it in backcast.yaml; columns are: {', '.join(columns)}",
            column=name,
        )
