"""On a cluster a replay needs somebody's word that all machines write to one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import Refused
from backcast.project.config import load_project
from backcast.project.sharing import refuse_unshared

_CLUSTER = "spark://cluster:7077"


@pytest.mark.parametrize(
    ("master", "shared", "refused"),
    [("local[2]", "false", False), (_CLUSTER, "true", False), (_CLUSTER, "false", True), ("yarn", "false", True)],
)
def test_a_replay_on_a_cluster_is_refused_unless_the_folder_is_said_to_be_shared(
    tmp_path: Path, master: str, shared: str, refused: bool
) -> None:
    (tmp_path / "backcast.yaml").write_text(f'name: shop\nspark: {{master: "{master}", shared: {shared}}}\n')
    project = load_project(tmp_path)
    if not refused:
        refuse_unshared(project, master, tmp_path)
        return
    with pytest.raises(Refused, match=f"executors of {master} write them") as told:
        refuse_unshared(project, master, tmp_path)
    assert "spark: {shared: true}" in (told.value.hint or "")
