"""The store's address: secrets come from elsewhere, whatever signs they hold, and are shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url

from backcast.errors import ConfigError
from backcast.project.config import Project
from backcast.project.identity import own_folders
from backcast.project.store_address import store_url
from backcast.store import place_of
from tests.unit.projects import GOOD, project, write

ODD = "p@/:%?# w${X}ü"


def with_store(root: Path, store: str, **environ: str) -> Project:
    return project(root, GOOD.replace("name: shop", f"name: shop\nstore: '{store}'"), environ=environ)


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://ann:${PW}@db.example:5433/runs?sslmode=require",
        "postgresql://${NAME}:${PW}@${HOST}/runs?sslmode=require",
        "postgresql://ann:${file:secrets/pw}@db.example:5433/${DATABASE:-runs}?sslmode=require",
        "${WHOLE}",
    ],
)
def test_any_password_arrives_as_it_is(tmp_path: Path, store: str) -> None:
    write(tmp_path, {"secrets/pw": f"{ODD}\n"})
    whole = "postgresql://ann:p%40%2F%3A%25%3F%23%20w%24%7BX%7D%C3%BC@db.example:5433/runs?sslmode=require"
    loaded = with_store(tmp_path, store, PW=ODD, NAME="ann", HOST="db.example:5433", WHOLE=whole)
    url = make_url(store_url(loaded))
    assert (url.username, url.password, url.host, url.port, url.database) == ("ann", ODD, "db.example", 5433, "runs")
    assert url.query == {"sslmode": "require"}
    assert place_of(store_url(loaded)) == "postgresql://db.example:5433/runs"
    assert loaded.store_path is None


@pytest.mark.parametrize("password", ["secret", "se/cr@et", "${PW}"])
def test_an_address_from_the_environment_may_hold_a_password_which_is_shown_nowhere(
    tmp_path: Path, password: str
) -> None:
    address = f"postgresql://ann:{password}@db/runs"
    loaded = project(tmp_path, environ={"BACKCAST__STORE": address, "PW": "secret"})
    for text in (repr(loaded), repr(loaded.config), str(loaded.config.as_json())):
        assert not any(part in text for part in (password, "secret", "ann:"))
    assert loaded.config.as_json()["store"] == "postgresql://***@db/runs"


def test_a_variable_that_is_not_set_is_missed_when_the_store_is_opened(tmp_path: Path) -> None:
    loaded = with_store(tmp_path, "postgresql://ann:${PW}@db/runs")
    with pytest.raises(ConfigError, match=r"backcast\.yaml:2: store: the environment variable PW is not set$"):
        store_url(loaded)


def test_a_file_is_found_from_the_project_wherever_the_command_runs(tmp_path: Path) -> None:
    loaded = with_store(tmp_path, "${FOLDER}/store.db", FOLDER="state")
    assert store_url(loaded) == f"sqlite:///{tmp_path}/state/store.db"
    assert loaded.store_path == tmp_path / "state/store.db"


def test_only_a_file_of_the_project_is_a_folder_of_its_own(tmp_path: Path) -> None:
    assert own_folders(with_store(tmp_path, "state/store.db")) == (".backcast", ".lake", "state")
    assert own_folders(with_store(tmp_path, "postgresql://db/runs")) == (".backcast", ".lake")
    assert own_folders(with_store(tmp_path, "/elsewhere/store.db")) == (".backcast", ".lake")
