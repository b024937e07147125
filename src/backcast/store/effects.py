"""Intents and outcomes of side effects, so that a successor knows what to look for."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import RowMapping, select, update

from backcast.errors import StateConflict
from backcast.model.run import Effect
from backcast.model.states import EffectState
from backcast.store.engine import Database, fields, now
from backcast.store.events import text
from backcast.store.schema import effects


class SqlEffects:
    """Implements the port `EffectLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, run_id: str, name: str, key: str, **data: Any) -> Effect:
        with self._database.write() as connection:
            row = {
                "run_id": run_id,
                "name": name,
                "key": key,
                "state": EffectState.INTENDED.value,
                "data": text(data),
                "at": now(connection),
            }
            inserted = connection.execute(effects.insert().values(row).returning(*fields(effects, Effect)))
            return _effect(inserted.mappings().one())

    def end(self, effect: Effect, state: EffectState, **data: Any) -> None:
        """Adds the data to that of the intent. The same outcome twice is harmless, a different one is refused."""
        with self._database.write() as connection:
            query = select(*fields(effects, Effect)).where(effects.c.effect_id == effect.effect_id)
            row = connection.execute(query).mappings().one_or_none()
            there = None if row is None else _effect(row)
            if there is None or state is EffectState.INTENDED or there.state not in (EffectState.INTENDED, state):
                recorded = "missing" if there is None else there.state.value
                raise StateConflict(
                    f"{effect.name} of {effect.run_id} is {recorded} and cannot become {state.value}",
                    hint=f"look at the run with `backcast status {effect.run_id}`",
                    run_id=effect.run_id,
                )
            outcome = {"state": state.value, "data": text({**there.data, **data}), "ended_at": now(connection)}
            connection.execute(update(effects).where(effects.c.effect_id == effect.effect_id).values(outcome))

    def open(self, run_id: str) -> list[Effect]:
        query = select(*fields(effects, Effect)).where(
            effects.c.run_id == run_id, effects.c.state == EffectState.INTENDED.value
        )
        with self._database.read() as connection:
            return [_effect(row) for row in connection.execute(query.order_by(effects.c.effect_id)).mappings()]


def _effect(row: RowMapping) -> Effect:
    return Effect.model_validate({**row, "data": json.loads(row["data"])})
