"""What a host is told, a server's or that of a command: every setting, where its value comes from, and what it may be.

All of them are a server's; a command that has a store to itself takes of them those that it can use.

A value comes from a flag, or else from the environment (`KEEVE_SERVER_PORT`), or else from a TOML file (`port = 8420`),
or else is the default; `LoadedSettings` says which it was. `[principals.NAME]`, `[models.NAME]` and
`[credentials.NAME]` are tables of the file.

The one rule: no secret is a setting. Tokens are in files, keys of models in variables of the environment, credentials
in either, and what stands here is their names; so all of it can be shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from dataspace.errors import KeeveError
from dataspace.urls import shown as shown_url
from keeve.variables import ACTORS, STORE

PREFIX: Final = "KEEVE_SERVER_"
VERBS: Final = ("read", "turn", "manage", "admin")
"""What a principal may do: look; say something; make, fork, approve of and delete; all that with all sessions."""


class BadServerSetting(KeeveError, ValueError):
    """A setting that cannot be followed; `source` says where it came from."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, source: str, reason: str) -> None:
        self.name = name
        self.source = source
        super().__init__(
            f"{name} ({source}): {reason}; see what keeve config shows of all settings, and keeve serve --help"
        )


@attrs.frozen
class PrincipalFile:
    """Somebody else than the owner who may ask: the file of their token, and what they may do."""

    name: str
    token_file: Path
    verbs: tuple[str, ...] = ("read", "turn", "manage")
    where: str = "file"


@attrs.frozen
class ModelSource:
    """A model: its device has this name. `key` names the variable that holds its key."""

    name: str
    url: str
    model: str
    key: str | None = None
    where: str = "file"


@attrs.frozen
class CredentialSource:
    """Where a credential of the vault is: in a `variable` of the environment, or in a `file` for its owner alone."""

    name: str
    variable: str | None = None
    file: Path | None = None
    where: str = "file"


TABLES: Final = ("principals", "models", "credentials")
"""The settings that only a file has: a table for each of what has a name."""


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _count(least: int, most: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        number = int(given) if isinstance(given, str) and re.fullmatch(r"\d{1,18}", given, re.ASCII) else given
        if type(number) is not int or not least <= number <= most:
            raise ValueError(f"{given!r} is not a number from {least} to {most}")
        return number

    return read


def _seconds(given: Any) -> float:
    number = float(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else None
    if number is None or not 0 < number <= 86400:
        raise ValueError(f"{given!r} is not a number of seconds, more than 0 and at most 86400")
    return number


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise ValueError(f"{given!r} is not a text on one line")
    return given


def _path(given: Any) -> Path:
    return given if isinstance(given, Path) else Path(_text(given))


def _list(given: Any) -> tuple[str, ...]:
    items = given.split() if isinstance(given, str) else given
    if not isinstance(items, list | tuple):
        raise ValueError(f"{given!r} is not a list of texts")  # noqa: TRY004  # one error for what cannot be read
    return tuple(map(_text, items))


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in words:
            raise ValueError(f"{given!r} is none of {', '.join(words)}")
        return str(given)

    return read


def _is(read: Callable[[Any], Any], what: str) -> dict[str, Any]:
    return {"read": read, "what": what}


@attrs.frozen(kw_only=True)
class ServerSettings:
    """All settings of a server: each says how it is read, and what it is (`HOW`), and has its default."""

    store: Path = attrs.field(default=Path("data"), metadata=_is(_path, "the folder of the store"))
    host: str = attrs.field(default="127.0.0.1", metadata=_is(_text, "the address that is listened at"))
    port: int = attrs.field(default=8420, metadata=_is(_count(0, 65535), "the port there; 0 takes one that is free"))
    tls_cert: Path | None = attrs.field(
        default=None, metadata=_is(_path, "the file of a certificate chain (PEM): TLS is spoken, and only that")
    )
    tls_key: Path | None = attrs.field(default=None, metadata=_is(_path, "the file of its key"))
    hosts: tuple[str, ...] = attrs.field(
        default=(), metadata=_is(_list, "names under which it is reached, beside localhost and addresses")
    )
    origins: tuple[str, ...] = attrs.field(
        default=(), metadata=_is(_list, "other origins whose pages may ask (https://app.example)")
    )
    actors: tuple[str, ...] = attrs.field(
        default=(), metadata=_is(_list, "actor types of your own, as module or module:Class")
    )
    tools: str | None = attrs.field(
        default=None, metadata=_is(_text, "the tools that sessions may call, as module:NAME of a Tools")
    )
    signer: Path | None = attrs.field(
        default=None, metadata=_is(_path, "the file of an Ed25519 key that signs checkpoints and receipts")
    )
    unknown: str = attrs.field(
        default="break",
        metadata=_is(
            _one_of("break", "hold"),
            "what becomes of calls of unknown outcome: they break, or they hold until a person settles them",
        ),
    )
    body_bytes: int = attrs.field(
        default=4 << 20, metadata=_is(_count(1, 1 << 30), "bytes that the body of a request may have")
    )
    body_seconds: float = attrs.field(default=30.0, metadata=_is(_seconds, "seconds that a body may take to come"))
    idle_seconds: float = attrs.field(
        default=15.0, metadata=_is(_seconds, "seconds that a connection may be idle, or take to say what it wants")
    )
    connections: int = attrs.field(
        default=1000,
        metadata=_is(
            _count(1, 1_000_000), "connections at once; a further one waits for a place, or takes that of an idle one"
        ),
    )
    streams: int = attrs.field(
        default=100, metadata=_is(_count(1, 1_000_000), "requests of a principal under way at once")
    )
    requests: int = attrs.field(
        default=6000, metadata=_is(_count(1, 10_000_000), "requests of a principal in a minute")
    )
    sessions: int = attrs.field(
        default=100_000,
        metadata=_is(_count(1, 1_000_000_000), "sessions that a principal may have, unless it is admin"),
    )
    grace: float = attrs.field(
        default=10.0, metadata=_is(_seconds, "seconds that requests and turns have to end when the server stops")
    )
    log: str = attrs.field(
        default="text", metadata=_is(_one_of("text", "json"), "how the log is written: text or json")
    )
    log_level: str = attrs.field(
        default="info",
        metadata=_is(
            _one_of("debug", "info", "warning", "error"), "the least that it has: debug, info, warning or error"
        ),
    )
    principals: Mapping[str, PrincipalFile] = attrs.field(factory=dict)
    models: Mapping[str, ModelSource] = attrs.field(factory=dict)
    credentials: Mapping[str, CredentialSource] = attrs.field(factory=dict)


HOW: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    field.name: (field.metadata["read"], field.metadata["what"])
    for field in attrs.fields(ServerSettings)
    if "read" in field.metadata
}
"""Of each setting that is one value: how it is read, and what it is."""


@attrs.frozen
class LoadedSettings:
    """Settings, and by name of each where its value came from."""

    settings: ServerSettings
    sources: Mapping[str, str]

    def said(self, name: str) -> str:
        """How a setting was said, for who is to say it otherwise: `--tools`, `KEEVE_SERVER_TOOLS`, `tools (file …)`."""
        source = self.sources[name]
        if source == "flag":
            return f"--{name.replace('_', '-')}"
        if source == "environment":
            return f"{PREFIX}{name.upper()}"
        return source if source == ACTORS else f"{name} ({source})"


def settings_from(flags: Mapping[str, Any], environ: Mapping[str, str], config: Path | None = None) -> LoadedSettings:
    """The settings of these flags (those that are None were not given), this environment and this file, whose paths
    are relative to its folder. The variables that all commands know, KEEVE_STORE and KEEVE_ACTORS, count before those
    that are a setting's own.

    Raises `BadServerSetting`, also for a name that is none.
    """
    file = _file(config)
    where = f"file {config}"
    given = {name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    given.pop("config", None)
    for source, names in (("environment", given), (where, file)):
        for name in names:
            if name not in HOW and not (source == where and name in TABLES):
                shown = f"{PREFIX}{name.upper()}" if source == "environment" else name
                raise BadServerSetting(shown, source, "there is no such setting")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for field in attrs.fields(ServerSettings):
        name, sources[field.name] = field.name, "default"
        if name not in HOW:
            continue
        for source, found in (
            (_flag(name, flags, environ), flags.get(name)),
            (STORE, (environ.get(STORE) or None) if name == "store" else None),
            ("environment", given.get(name)),
            (where, file.get(name)),
        ):
            if found is not None:
                sources[name] = source
                try:
                    values[name] = HOW[name][0](found)
                    if source == where:
                        values[name] = _beside(config, values[name])
                except (ValueError, OverflowError) as error:
                    said = f"{PREFIX}{name.upper()}" if source == "environment" else name
                    raise BadServerSetting(said, source, str(error)) from error
                break
    for name, read in zip(TABLES, (_principal, _model, _credential), strict=True):
        if name in file:
            values[name] = _table(name, config, where, file[name], read)
            sources[name] = where
    settings = ServerSettings(**values)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise BadServerSetting("tls_cert, tls_key", "together", "TLS needs both, the certificate and its key")
    return LoadedSettings(settings, sources)


def _beside(config: Path | None, value: Any) -> Any:
    """A path of a file of settings is that of the file's folder, from wherever a command is called."""
    return config.parent / value if config is not None and isinstance(value, Path) else value


def _flag(name: str, flags: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Where a flag comes from: the command line reads `KEEVE_ACTORS`, which all commands know, in the flag's place."""
    named = environ.get(ACTORS, "").split()
    return ACTORS if name == "actors" and named and named == list(flags.get("actors") or ()) else "flag"


def shown(settled: LoadedSettings) -> list[tuple[str, Any, str]]:
    """Name, value in JSON and source of every setting, in order. Of a URL nothing is shown that may be a secret."""
    return [(name, _face(getattr(settled.settings, name)), source) for name, source in settled.sources.items()]


def _is_said(field: attrs.Attribute[Any], _: Any) -> bool:
    return field.name != "where"  # which the source says


def _face(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {
            name: _face(attrs.asdict(each, recurse=False, filter=_is_said)) if attrs.has(type(each)) else _face(each)
            for name, each in value.items()
        }
    if isinstance(value, tuple):
        return [_face(item) for item in value]
    return shown_url(value) if isinstance(value, str) and "://" in value else value


def _file(config: Path | None) -> Mapping[str, Any]:
    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text())
    except OSError as error:
        raise BadServerSetting("config", str(config), str(error.strerror)) from error
    except ValueError as error:
        raise BadServerSetting("config", str(config), f"it is not TOML ({error})") from error


def _table(
    name: str, config: Path | None, where: str, given: Any, read: Callable[[str, Mapping[str, Any]], Any]
) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise BadServerSetting(name, where, f"write a table for each: [{name}.NAME]")
    found = {}
    for key, each in given.items():
        try:
            said = read(key, each)
            beside = {field: _beside(config, value) for field, value in attrs.asdict(said, recurse=False).items()}
            found[_text(key)] = attrs.evolve(said, **{**beside, "where": where})
        except (ValueError, TypeError) as error:
            raise BadServerSetting(f"{name}.{key}", where, str(error)) from error
    return found


def _principal(name: str, given: Mapping[str, Any]) -> PrincipalFile:
    _only(given, "token_file", "verbs")
    verbs = _list(given.get("verbs", ["read", "turn", "manage"]))
    for verb in verbs:
        if verb not in VERBS:
            raise ValueError(f"{verb!r} is none of {', '.join(VERBS)}")
    return PrincipalFile(name, _path(given.get("token_file")), verbs)


def _model(name: str, given: Mapping[str, Any]) -> ModelSource:
    _only(given, "url", "model", "key")
    key = given.get("key")
    if key is not None and not _VARIABLE.fullmatch(str(key)):
        raise ValueError("key is the name of the variable that holds the key, not the key itself")  # and is not shown
    return ModelSource(name, _text(given.get("url")), _text(given.get("model", name)), key)


def _credential(name: str, given: Mapping[str, Any]) -> CredentialSource:
    _only(given, "variable", "file")
    variable, file = given.get("variable"), given.get("file")
    if (variable is None) == (file is None):
        raise ValueError('say where it is: variable = "NAME", or file = "PATH"')
    # What is given by mistake may be the value, and is not shown.
    if variable is not None and not _VARIABLE.fullmatch(str(variable)):
        raise ValueError("variable is the name of the variable that holds the value, not the value itself")
    if file is not None and not (isinstance(file, str) and file and file.isprintable()):
        raise ValueError("file is the path of the file that holds the value, not the value itself")
    return CredentialSource(name, variable, None if file is None else Path(file))


def _only(given: Mapping[str, Any], *names: str) -> None:
    for name in given:
        if name not in names:
            raise ValueError(f"it has no {name}; it has {', '.join(names)}")
