"""The policy file: what it means, and file, line and key of everything that is wrong in it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from backcast.errors import ConfigError, NotApproved
from backcast.model.policy import DEFAULT_MATRIX, STAKEHOLDERS, Policy
from backcast.model.request import Kind
from backcast.model.table import PublishMode
from backcast.project.config import load_project
from backcast.project.people import whoami
from backcast.project.policy import load_policy
from backcast.project.tokens import fits, is_token_hash, token_hash
from tests.docs.pages import ROOT
from tests.unit.projects import GOOD, project, write

ROLES = "roles: {team-lead: [alice, 'os:bob'], data-lead: [carol], manager: [dan], director: [eve]}\n"
SALT = bytes(16)


def loaded(root: Path, text: str, profile: str | None = None) -> Policy | None:
    project(root, f"{GOOD}policy: policy.yaml\n")
    write(root, {"policy.yaml": text})
    return load_policy(load_project(root, profile, environ={}))


def resolved(root: Path, text: str) -> Policy:
    found = loaded(root, text)
    assert found is not None
    return found


def test_without_the_key_there_is_no_policy(tmp_path: Path) -> None:
    assert load_policy(project(tmp_path)) is None


def test_people_alone_get_the_default_matrix(tmp_path: Path) -> None:
    found = resolved(tmp_path, ROLES)
    assert found.matrix == DEFAULT_MATRIX
    assert (found.expires_seconds, found.own_runs) == (7 * 86_400, True)


def test_a_matrix_of_ones_own(tmp_path: Path) -> None:
    found = resolved(
        tmp_path,
        """\
        roles: {owner: [alice], boss: [bob]}
        expires: 12h
        own_runs: false
        review: boss
        ticket: 'DATA-\\d+'
        matrix:
          - when: {days: '>= 2', mode: [replace, merge], kind: repair, tier: gold}
            needs: [owner, boss]
            notify: board@example.com
            within: 4h
            confirm: true
          - when: {rows: 10..20, cost: '> 1.5', whole_table: false}
            needs: owner
        budget: {rows: 1000, cost: 20, duration: 2h}
        prices: {per_million_rows: 0.5..2, per_executor_hour: 3, executors: 4, currency: EUR}
        """,
    )
    first, second = found.matrix
    assert first.when.days is not None
    assert (first.when.days.at_least, first.when.mode) == (2, (PublishMode.REPLACE, PublishMode.MERGE))
    assert (first.when.kind, first.when.tier, first.within_seconds) == ((Kind.REPAIR,), ("gold",), 4 * 3600)
    assert (first.needs, first.notify, first.confirm) == (("owner", "boss"), ("board@example.com",), True)
    assert second.when.rows is not None
    assert second.when.cost is not None
    assert (second.when.rows.at_least, second.when.rows.at_most, second.when.cost.above) == (10, 20, 1.5)
    assert (found.expires_seconds, found.own_runs, found.review) == (12 * 3600, False, ("boss",))
    assert found.budget is not None
    assert (found.budget.rows, found.budget.cost, found.budget.seconds) == (1000, 20, 7200)
    assert found.prices is not None
    assert (found.prices.per_million_rows, found.prices.per_executor_hour) == ((0.5, 2), (3, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rolls: {a: [b]}\n", "policy.yaml:1: rolls: unknown key; did you mean roles?"),
        ("roles: {a: [b]}\nmatrix:\n  - needs: [c]\n", "policy.yaml:3: matrix[0].needs[0]: no role is called 'c'"),
        (
            "roles: {a: [b, b]}\nmatrix:\n  - needs: [a, a]\n",
            "matrix[0].needs[1]: 'a' is needed 2 times, each time of another person, and roles names 1",
        ),
        ("roles: {a: [b]}\nmatrix:\n  - when: {dais: '< 7'}\n", "policy.yaml:3: matrix[0].when.dais: unknown key"),
        ("roles: {a: [b]}\nmatrix:\n  - when: {days: 7}\n", "policy.yaml:3: matrix[0].when.days: expected a range"),
        ("roles: {a: [b]}\nmatrix:\n  - when: {days: 9..7}\n", "the smaller number first"),
        ("roles: {a: [b]}\nmatrix:\n  - within: 4h\n", "matrix[0]: within says by when somebody is told"),
        ("roles: {a: [b]}\n", "no role is called 'team-lead'"),
        (f"{ROLES}review: [nobody]\n", "policy.yaml:2: review[0]: no role is called 'nobody'"),
        (f"{ROLES}ticket: '('\n", "policy.yaml:2: ticket: expected a pattern"),
        (f"{ROLES}expires: soon\n", "policy.yaml:2: expires: 'soon' is not a duration"),
        (f"{ROLES}people:\n  alice: {{token: hunter2}}\n", "people.alice.token: expected the hash of a token"),
        (f"{ROLES}people:\n  zoe: {{os: zoe}}\n", "policy.yaml:3: people.zoe: no role names this person"),
        (f"{ROLES}people:\n  carol: {{}}\n", "how is this person recognised?"),
        (f"{ROLES}prices: {{per_million_rows: cheap}}\n", "policy.yaml:2: prices.per_million_rows: expected a price"),
        (f"{ROLES}budget: {{cost: inf}}\n", "policy.yaml:2: budget.cost: expected at most"),
        (f"{ROLES}budget: {{rows: 0}}\n", "policy.yaml:2: budget.rows: expected at least 1"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert said in caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_policy_that_is_named_must_be_there(tmp_path: Path) -> None:
    found = project(tmp_path, f"{GOOD}policy: elsewhere.yaml\n")
    with pytest.raises(ConfigError, match=r"backcast.yaml:\d+: policy: there is no file elsewhere.yaml"):
        load_policy(found)


@pytest.mark.parametrize("name", ["/etc/policy.yaml", "../policy.yaml", "policy.txt"])
def test_a_policy_stands_in_the_project(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="inside the project"):
        project(tmp_path, f"{GOOD}policy: {name}\n")


@pytest.mark.parametrize("name", ["BACKCAST__POLICY", "BACKCAST__DATASETS__DAILY__TIER"])
@pytest.mark.parametrize("value", ["mine.yaml", ""])
def test_a_variable_cannot_choose_the_policy_or_the_tier(tmp_path: Path, name: str, value: str) -> None:
    written = GOOD.replace("  daily:\n    table", "  daily:\n    tier: gold\n    table") + "policy: policy.yaml\n"
    assert project(tmp_path, written).dataset("daily").tier == "gold"
    with pytest.raises(ConfigError, match="a variable cannot set it"):
        project(tmp_path, written, environ={name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BACKCAST__DATASETS", "{daily: {tier: bronze}}"),
        ("BACKCAST__DATASETS__DAILY", "{tier: bronze}"),
        ("BACKCAST__DATASETS__DAILY", "{tier: null}"),
    ],
)
def test_nor_does_a_variable_for_a_key_above_the_tier(tmp_path: Path, name: str, value: str) -> None:
    written = GOOD.replace("  daily:\n    table", "  daily:\n    tier: gold\n    table")
    with pytest.raises(ConfigError, match="a variable cannot set it"):
        project(tmp_path, written, environ={name: value})
    kept = project(tmp_path, written, environ={"BACKCAST__DATASETS__DAILY": "{streaming_readers: [live]}"})
    assert kept.dataset("daily").tier == "gold"


def test_a_profile_may_ask_for_more(tmp_path: Path) -> None:
    text = textwrap.dedent(f"{ROLES}profiles:\n  prod: {{expires: 1h}}\n")
    project(tmp_path, f"{GOOD}policy: policy.yaml\nprofiles: {{prod: {{}}, dev: {{}}}}\n")
    write(tmp_path, {"policy.yaml": text})
    found = {name: load_policy(load_project(tmp_path, name, environ={})) for name in ("prod", "dev")}
    assert [each.expires_seconds for each in found.values() if each] == [3600, 7 * 86_400]


def test_a_hash_fits_its_token_and_no_other() -> None:
    known = token_hash("secret", SALT)
    assert is_token_hash(known)
    assert "secret" not in known
    assert fits("secret", known)
    assert not fits("Secret", known)
    assert token_hash("secret") != token_hash("secret")


def known_as(monkeypatch: pytest.MonkeyPatch, account: str) -> None:
    monkeypatch.setattr("backcast.project.people.os_user", lambda: account)
    monkeypatch.setattr("backcast.project.people.login_user", lambda: None)


def test_an_account_has_the_roles_that_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = resolved(tmp_path, ROLES)
    for account, roles in (("alice", ("team-lead",)), ("bob", ("team-lead",)), ("mallory", ())):
        known_as(monkeypatch, account)
        found = whoami(policy, {"USER": "eve", "LOGNAME": "eve"})
        assert (found.name, found.how, found.roles) == (account, "os-user", roles)


def test_a_token_is_a_person_and_the_account_is_on_record_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = resolved(tmp_path, f"{ROLES}people:\n  carol: {{token: '{token_hash('secret', SALT)}'}}\n")
    known_as(monkeypatch, "ci")
    found = whoami(policy, {"BACKCAST_TOKEN": "secret"})
    assert (found.name, found.how, found.account, found.roles) == ("carol", "token", "ci", ("data-lead",))
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert whoami(policy, {"BACKCAST_TOKEN_FILE": str(file)}) == found
    known_as(monkeypatch, "carol")
    assert whoami(policy, {}).roles == ()


def test_a_person_may_be_known_by_account_and_by_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = token_hash("secret", SALT)
    policy = resolved(tmp_path, f"{ROLES}people:\n  carol: {{token: '{token}', os: c123}}\n")
    known_as(monkeypatch, "c123")
    assert whoami(policy, {}).name == whoami(policy, {"BACKCAST_TOKEN": "secret"}).name == "carol"
    assert whoami(policy, {}).roles == ("data-lead",)


@pytest.mark.parametrize("environ", [{"BACKCAST_TOKEN": "wrong"}, {"BACKCAST_TOKEN_FILE": "/nowhere"}])
def test_a_token_that_fits_nobody_is_not_taken_for_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    policy = resolved(tmp_path, f"{ROLES}people:\n  carol: {{token: '{token_hash('secret', SALT)}'}}\n")
    known_as(monkeypatch, "alice")
    with pytest.raises(NotApproved):
        whoami(policy, environ)


def test_the_matrix_of_the_guide_can_be_used_as_it_is(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "approval.md").read_text()
    blocks = re.findall(r"```yaml\n# policy.yaml\n(.*?)```", guide, re.DOTALL)
    found = resolved(tmp_path, "".join(blocks))
    assert len(blocks) == 2
    plain = (rule.model_copy(update={"notify": STAKEHOLDERS if rule.notify else ()}) for rule in found.matrix)
    assert tuple(plain)[: len(DEFAULT_MATRIX)] == DEFAULT_MATRIX
