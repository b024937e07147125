"""Real checkpoints, damaged at random: whatever Spark fails on, or gets wrong without a word, was found before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.folder import Checkpoint
from tests.spark.checkpoint_kit import Lab, as_after_a_kill, files_below, restarts

TRIALS = 2
"""What can be named stands in the table of damages; these are for what nobody thought of."""


@pytest.mark.parametrize("store", ["hdfs", "changelog", "rocksdb"])
def test_a_checkpoint_that_is_called_sound_restarts_and_gives_out_what_it_should(
    lab: Lab, tmp_path: Path, store: str
) -> None:
    for seed in range(TRIALS):
        made = lab.copy(store, tmp_path / f"{store}-{seed}")
        last = as_after_a_kill(made)
        assert verify(Checkpoint.at(made.path)).sound
        told = spoil(made.path, random.Random(f"{store}{seed}"))  # noqa: S311 - damage, not secrets
        found = verify(Checkpoint.at(made.path))
        right = restarts(lab, store, made, last) == "right"
        assert right or not found.sound, told


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
