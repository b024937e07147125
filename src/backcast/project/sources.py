"""Declared Kafka topics as the flow knows them, and how clients reach their brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import ConfigError
from backcast.model.source import Archive, Encoding, KafkaAccess, Layout, LogSource, Quarantine
from backcast.project.problems import KeyPath, Problem, raise_problems

if TYPE_CHECKING:
    from backcast.project.config import Project
    from backcast.project.source_schema import ArchiveConfig, LayoutConfig, QuarantineConfig, SecurityConfig

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def log_source(project: Project, name: str) -> LogSource:
    """The declaration, without anything secret. Raises ConfigError when a schema file cannot be read."""
    config = project.config.sources[name]
    return LogSource(
        name=name,
        topic=config.topic,
        value=_layout(project, name, "value", config.value),
        key=_layout(project, name, "key", config.key),
        time=config.time.resolve() if config.time else None,
        isolation=config.isolation,
        slack_before=config.slack.before,
        slack_after=config.slack.after,
        to_end=config.to_end,
        transactional=config.transactional,
        tombstones=config.tombstones == "rows",
        quarantine=_quarantine(project, config.quarantine),
        archive=_archive(project, config.archive),
    )


def kafka_access(project: Project, name: str) -> KafkaAccess:
    """Everything resolved, secrets included: for clients and nobody else. Raises ConfigError for unset variables."""
    config = project.config.sources[name]
    problems: list[Problem] = []

    def filled(text: str, *path: str) -> str:
        where: KeyPath = ("sources", name, *path)
        return project.interpolation.text(text, where, project.place(*map(str, where)), problems)

    options = {key: filled(value, "options", key) for key, value in config.options.items()}
    security = config.security
    username = filled(security.username or "", "security", "username")
    password = filled(security.password or "", "security", "password")
    registry = config.value.registry or config.key.registry
    side = "value" if config.value.registry else "key"
    login = {}
    if registry is not None and registry.username and registry.password:
        user = filled(registry.username, side, "registry", "username")
        login["basic.auth.user.info"] = f"{user}:{filled(registry.password, side, 'registry', 'password')}"
    raise_problems(problems)
    if security.ca_file:
        security = security.model_copy(update={"ca_file": str(project.root / Path(security.ca_file).expanduser())})
    java = {**options, **_java_security(security, username, password)}
    return KafkaAccess(
        servers=config.servers,
        client={**options, **_client_security(security, username, password)},
        spark={f"kafka.{key}": value for key, value in java.items()},
        registry=login,
    )


def _layout(project: Project, name: str, side: str, config: LayoutConfig) -> Layout:
    schema = config.columns or ""
    if config.schema_file is not None:
        try:
            schema = (project.root / config.schema_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            place = project.place("sources", name, side, "schema_file")
            raise ConfigError(f"{place}: the file {config.schema_file!r} cannot be read as text") from error
    return Layout(
        encoding=config.format,
        schema=schema,
        registry=config.registry.url if config.registry else None,
        subject=config.subject,
        surplus=config.unknown,
        lack=config.missing,
    )


def _quarantine(project: Project, config: QuarantineConfig | None) -> Quarantine | None:
    if config is None:
        return None
    if config.table is not None:
        return Quarantine(config.table, config.most)
    return Quarantine(f"delta.`{_absolute(project, str(config.path))}`", config.most)


def _archive(project: Project, config: ArchiveConfig | None) -> Archive | None:
    if config is None:
        return None
    columns = {str(ours): theirs for ours, theirs in config.columns.items()}
    if config.files is not None:
        return Archive(files=_absolute(project, config.files), columns=columns)
    if config.path is not None:
        return Archive(table=f"delta.`{_absolute(project, config.path)}`", is_delta=True, columns=columns)
    catalog = project.config.catalogs[str(config.table).partition(".")[0]]
    return Archive(table=config.table, is_delta=catalog.type == "delta", columns=columns)


def _absolute(project: Project, path: str) -> str:
    return path if ":" in path else str(project.root / Path(path).expanduser())


def _client_security(security: SecurityConfig, username: str, password: str) -> dict[str, str]:
    """In the words of librdkafka."""
    told: dict[str, str] = {"security.protocol": security.protocol}
    if security.mechanism:
        told |= {"sasl.mechanism": security.mechanism, "sasl.username": username, "sasl.password": password}
    if security.ca_file:
        told["ssl.ca.location"] = security.ca_file
    return told


def _java_security(security: SecurityConfig, username: str, password: str) -> dict[str, str]:
    """In the words of Java's client, which Spark uses."""
    told: dict[str, str] = {"security.protocol": security.protocol}
    if security.mechanism:
        module = _LOGIN[security.mechanism]
        login = f'username="{_escaped(username)}" password="{_escaped(password)}"'
        told |= {"sasl.mechanism": security.mechanism, "sasl.jaas.config": f"{module} required {login};"}
    if security.ca_file:
        told |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca_file}
    return told


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def needs_avro(project: Project) -> bool:
    return any(Encoding.AVRO in (config.value.format, config.key.format) for config in project.config.sources.values())
