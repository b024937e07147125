"""Reads the policy file that `backcast.yaml` names, with file, line and key of everything that is wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from backcast.errors import ConfigError
from backcast.model.policy import DEFAULT_MATRIX, Policy, Rule
from backcast.project.policy_schema import PolicyConfig, policy_keys_at
from backcast.project.problems import KeyPath, Problem, from_validation, raise_problems, suggestion
from backcast.project.profiles import choose_profile
from backcast.project.yaml_lines import Tree, read_yaml

if TYPE_CHECKING:
    from backcast.project.config import Project


def load_policy(project: Project) -> Policy | None:
    """The policy as it is now; None when the project has none. Raises ConfigError with every problem found."""
    name = project.config.policy
    if name is None:
        return None
    file = (project.root / Path(name)).resolve()
    if not file.is_file():
        raise ConfigError(f"{project.place('policy')}: policy: there is no file {name}", key="policy")
    written = read_yaml(file, name)
    here = project.profile if project.profile in (written.mapping.get("profiles") or {}) else None
    tree = choose_profile(written, here)
    problems: list[Problem] = []
    config: PolicyConfig | None = None
    try:
        config = PolicyConfig.model_validate(tree.value)
    except ValidationError as error:
        problems += from_validation(error, tree.place, policy_keys_at, _is_secret)
    problems += _unknown_roles(tree, config)
    raise_problems(problems)
    if config is None:
        raise ConfigError(f"{name}: it is not a policy", file=name)
    return config.resolve()


def _is_secret(path: KeyPath) -> bool:
    return path[-1:] == ("token",)


def _unknown_roles(tree: Tree, config: PolicyConfig | None) -> list[Problem]:
    """A rule that asks for a role that nobody can hold would block every run; a person whom no role names is a slip."""
    if config is None:
        return []
    roles = config.roles
    matrix: tuple[Rule, ...] = (
        DEFAULT_MATRIX if config.matrix is None else tuple(each.resolve() for each in config.matrix)
    )
    found = []
    for number, rule in enumerate(matrix):
        for place, role in enumerate(rule.needs):
            path: KeyPath = ("matrix", number, "needs", place) if config.matrix is not None else ("roles",)
            if role not in roles:
                text = f"no role is called {role!r}{suggestion(role, roles)}"
                text += "" if config.matrix is not None else "; the default matrix needs it"
                found.append(Problem(tree.place(path), path, text))
            elif rule.needs[: place + 1].count(role) > len(set(roles[role])):
                text = f"{role!r} is needed {rule.needs.count(role)} times, each time of another person, and roles"
                found.append(Problem(tree.place(path), path, f"{text} names {len(set(roles[role]))}"))
    for place, role in enumerate(config.review):
        if role not in roles:
            path = ("review", place)
            found.append(Problem(tree.place(path), path, f"no role is called {role!r}{suggestion(role, roles)}"))
    named = {entry for entries in roles.values() for entry in entries}
    for person in config.people.keys() - named:
        path = ("people", person)
        found.append(Problem(tree.place(path), path, "no role names this person"))
    return found
