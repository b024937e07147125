"""Spark is seen to load the state of every operator. Always on a copy: its reader makes folders, and may clean up."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.spark.gateway import causes, is_jvm_error
from backcast.streams.checkpoint.copying import copy_files, up_to
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.state_files import DEFAULT, Operator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JOIN = "symmetricHashJoin"


def prove_state(spark: SparkSession, checkpoint: Checkpoint, batch: int) -> tuple[str, ...]:
    """A line for each operator and store: how many keys its state after that batch has.

    Raises Refused when one does not load. State whose files are named by commits cannot be read by this Spark: it is
    said so, and only the files were looked at.
    """
    if not checkpoint.operators:
        return ()
    if any(each.id for operator in checkpoint.operators for store in operator.stores for each in store.files):
        return ("state of format version 2: every file is there; Spark's reader cannot load it",)
    with tempfile.TemporaryDirectory(prefix="backcast-proof-") as folder:
        copy = Path(folder, "checkpoint")
        copy_files(checkpoint, copy, up_to(batch))
        return tuple(line for operator in checkpoint.operators for line in _loaded(spark, copy, batch, operator))


def _loaded(spark: SparkSession, copy: Path, batch: int, operator: Operator) -> Iterator[str]:
    for label, options in _parts(operator):
        reader = spark.read.format("statestore").option("operatorId", operator.number).option("batchId", batch)
        try:
            keys = reader.options(**options).load(str(copy)).count()
        except Exception as error:
            if not is_jvm_error(error):
                raise
            said = next((each.message for each in reversed(causes(error)) if each.message), type(error).__name__)
            raise Refused(
                f"state of operator {operator.number} ({label}) after batch {batch} does not load: {said}",
                hint="choose an earlier batch, or fork without state",
            ) from error
        where = "" if label == DEFAULT else f", {label}"
        yield f"operator {operator.number} ({operator.name}{where}): {keys} keys"


def _parts(operator: Operator) -> list[tuple[str, dict[str, str]]]:
    """What Spark's reader must be told so that all of the operator's state is read."""
    if operator.name == _JOIN:
        return [(side, {"joinSide": side}) for side in ("left", "right")]
    variables = operator.properties.get("stateVariables") or ()
    names = sorted(str(each["stateName"]) for each in variables if isinstance(each, dict) and "stateName" in each)
    if names:
        return [(name, {"stateVarName": name}) for name in names if not name.startswith("$")]
    return [(DEFAULT, {})]
