"""Arguments to commands, errors to exit codes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from backcast import __version__, errors
from backcast.cli import dispatch as dispatching
from backcast.cli.app import main
from backcast.cli.catalogue import FAMILIES, SUMMARIES
from backcast.cli.dispatch import dispatch, hoisted
from tests.unit.projects import GOOD, write


def test_the_first_page_names_every_command_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["-h"], ["help"], ["--no-color", "--help"]):
        main(arguments)
        page = capsys.readouterr().out
        assert all(f"  {name} " in page for name in SUMMARIES)
        assert max(map(len, page.splitlines())) <= 80


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out == f"backcast {__version__}\n"


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_command_has_help_json_and_the_summary_of_the_first_page(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module_name = name.replace(" ", "_")
    module = importlib.import_module(f"backcast.cli.commands.{module_name}")
    function = getattr(module, "list_" if name == "list" else module_name)
    assert function.__doc__.split(". ")[0].split("; the exit")[0].rstrip(".") + "." == SUMMARIES[name]
    assert dispatch([*name.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert "--json" in page
    assert "--project" in page


def test_help_of_any_command_loads_no_spark_pydantic_or_sqlalchemy() -> None:
    program = (
        "import sys\nfrom backcast.cli.app import main\nfrom backcast.cli.catalogue import SUMMARIES\n"
        "for name in SUMMARIES: main([*name.split(), '--help'])\n"
        "print('LOADED', *{each.partition('.')[0] for each in sys.modules})"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.rpartition("LOADED")[2].split())
    assert loaded & {"pyspark", "pydantic", "sqlalchemy"} == set()


def test_common_options_may_stand_before_the_command() -> None:
    assert hoisted(["--json", "--project", "p", "plan", "x", "--on", "d"]) == [
        "plan", "--json", "--project", "p", "x", "--on", "d",
    ]  # fmt: skip
    assert hoisted(["--profile=prod", "list"]) == ["list", "--profile=prod"]
    assert hoisted(["help", "diff"]) == ["diff", "--help"]
    assert hoisted(["--json", "kafka", "offsets", "t"]) == ["kafka", "offsets", "--json", "t"]
    assert hoisted(["help", "kafka", "offsets"]) == ["kafka", "offsets", "--help"]
    assert hoisted(["help", "kafka"]) == ["kafka", "--help"]


def test_the_first_word_of_two_lists_the_second_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for family in FAMILIES:
        assert dispatch([family, "--help"]) == 0
        page = capsys.readouterr().out
        assert all(name.split()[1] in page for name in SUMMARIES if name.startswith(f"{family} "))


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["bogus"], "no command is called 'bogus'", "backcast --help"),
        (["worker", "--idle", "-1"], "--idle must be at least 0, not -1", ""),
        (["plam"], "no command is called 'plam'", "did you mean `backcast plan`?"),
        (["kafka"], "which command of `backcast kafka`?", "backcast kafka --help"),
        (["kafka", "ofsets"], "no command is called 'kafka ofsets'", "did you mean `backcast kafka offsets`?"),
        (["kafka", "offsets"], "TOPIC requires an argument", "backcast kafka offsets --help"),
        (["kafka", "offsets", "t"], "--at requires an argument", "backcast kafka offsets --help"),
        (["kafka", "window", "t", "--event-time", "x"], "'x' is not a window of time", "write FROM..TO"),
        (["zzz"], "no command is called 'zzz'", "backcast --help"),
        (["--bogus", "plan"], "no option before the command is called '--bogus'", "backcast --help"),
        (["--json"], "which command?", "backcast --help"),
        (["status"], "RUN_ID requires an argument", "backcast status --help"),
        (["status", "a", "b"], "'b'", "backcast status --help"),
        (["list", "--bogus"], "Unknown option: --bogus", "backcast list --help"),
        (["list", "--limit", "x"], "--limit", "backcast list --help"),
        (["list", "--limit", "0"], "--limit must be at least 1", ""),
    ],
)
def test_bad_usage_exits_with_two(
    arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch([*arguments, "--json"] if "--json" not in arguments else arguments) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "request.invalid"
    assert message in error["message"]
    assert hint in error["hint"]


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(dispatching, "parser", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownName("no run is called 'x'"), 2),
        (errors.Drifted("the code moved"), 3),
        (errors.ScopeChanged("live rows arrived"), 4),
        (errors.ChunkFailed("the transform raised"), 5),
        (errors.OutcomeUnknown("nobody knows"), 6),
        (ZeroDivisionError("division by zero"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes_follow_the_class_of_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    raising(monkeypatch, error)
    assert dispatch(["list"]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert "Traceback" not in output.err
    assert dispatch(["list", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == code


def test_errors_say_code_message_hint_and_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, errors.SparkFailed("the JVM is gone", hint="try again", log="a.log"))
    dispatch(["list"])
    assert capsys.readouterr().err == "error[spark.failed]: the JVM is gone\n  hint: try again\n  log:  a.log\n"


def test_only_verbose_shows_tracebacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, ZeroDivisionError("division by zero"))
    assert dispatch(["list", "--verbose"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_folder_without_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dispatch(["list"]) == 2
    assert "backcast init" in capsys.readouterr().err
    assert dispatch(["list", "--project", str(tmp_path / "nowhere")]) == 2


def test_the_project_is_found_from_a_folder_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path, {"backcast.yaml": GOOD, "models/a.sql": ""})
    monkeypatch.chdir(root / "models")
    assert dispatch(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert dispatch(["status", "nope"]) == 2


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`backcast list | head -0` neither complains nor shows a traceback."""
    write(tmp_path, {"backcast.yaml": GOOD})
    command = [sys.executable, "-m", "backcast", "plan", "--help"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (141, b"")
