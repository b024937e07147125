"""Real checkpoints, damaged at random: whatever Spark fails on, or gets wrong without a word, was found before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.folder import Checkpoint
from tests.spark.checkpoint_kit import Lab, Made, files_below

TRIALS = 5


@pytest.mark.parametrize("store", ["hdfs", "changelog", "rocksdb"])
def test_a_checkpoint_that_is_called_sound_restarts_and_gives_out_what_it_should(
    lab: Lab, tmp_path: Path, store: str
) -> None:
    failures = 0
    for seed in range(TRIALS):
        made = lab.copy(store, tmp_path / f"{store}-{seed}")
        last = Checkpoint.at(made.path).committed
        assert last is not None
        # As after a kill: the restart runs the last batch again, from the state before it.
        for file in ("commits/{}", "commits/.{}.crc"):
            (made.path / file.format(last)).unlink()
        assert verify(Checkpoint.at(made.path)).sound
        told = spoil(made.path, random.Random(f"{store}{seed}"))  # noqa: S311 - damage, not secrets
        found = verify(Checkpoint.at(made.path))
        right = restarts(lab, store, made, last)
        failures += not right
        assert right or not found.sound, told
    assert failures


def spoil(root: Path, chance: random.Random) -> str:
    """One file that is no checksum: gone with its checksum, or cut or changed beside it."""
    logs = [root / "metadata", *files_below(root, "offsets/[0-9]*"), *files_below(root, "commits/[0-9]*")]
    state = [each for each in files_below(root, "state/**/*") if not each.name.startswith(".")]
    checkpoint = Checkpoint.at(root)
    stores = [store for operator in checkpoint.operators for store in operator.stores]
    needed = [file.path for store in stores for file in store.chain(checkpoint.next_batch)]
    file = chance.choice(chance.choice([logs[-3:] + logs[:1], state, needed, needed]))
    data = bytearray(file.read_bytes())
    match chance.choice(["gone", "cut", "end", "changed", "changed"]):
        case "gone":
            file.unlink()
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            return f"{file} is gone"
        case "cut":
            file.write_bytes(data[: chance.randrange(len(data))])
        case "end":
            file.write_bytes(data[:-7])
        case _:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
    return f"{file} has other bytes"


def restarts(lab: Lab, store: str, made: Made, last: int) -> bool:
    """Whether the last batch comes out as before."""
    from pyspark.errors import PySparkException

    expected = sorted(made.given.pop(last))
    try:
        lab.run(store, made)
    except PySparkException:
        return False
    return sorted(made.given.get(last, [])) == expected
