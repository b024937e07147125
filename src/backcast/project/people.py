"""Who is at the keyboard: by the uid of this process, or by a token. Never by what a variable claims."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backcast.errors import NotApproved
from backcast.model.approval import Person
from backcast.model.policy import Policy
from backcast.project.account import login_user, os_user
from backcast.project.tokens import fits

TOKEN = "BACKCAST_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "BACKCAST_TOKEN_FILE"  # noqa: S105 - the name of a variable


def whoami(policy: Policy | None, environ: Mapping[str, str]) -> Person:
    """The person, with the roles that the policy gives. Raises NotApproved for a token that is nobody's."""
    account = os_user()
    token = _token(environ)
    if token is not None:
        name = _owner(token, policy)
        how = "token"
    else:
        name, how = _known_as(account, policy), "os-user"
    roles = () if policy is None else policy.roles_of(name, how, account)
    return Person(name=name, how=how, account=account, roles=roles, login=login_user())


def _token(environ: Mapping[str, str]) -> str | None:
    if token := environ.get(TOKEN, "").strip():
        return token
    name = environ.get(TOKEN_FILE, "")
    if not name:
        return None
    try:
        token = Path(name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        raise NotApproved(f"the file that {TOKEN_FILE} names holds no token", hint="correct it, or unset the variable")
    return token


def _owner(token: str, policy: Policy | None) -> str:
    """Never falls back to the account: who shows a token means it."""
    people = {} if policy is None else policy.people
    for name, known in people.items():
        if known.token is not None and fits(token, known.token):
            return name
    raise NotApproved("the token fits nobody of the policy", hint=f"unset {TOKEN} to be known by the OS account")


def _known_as(account: str, policy: Policy | None) -> str:
    people = {} if policy is None else policy.people
    return next((name for name, known in people.items() if known.account == account), account)
