"""What a host is told to be, wherever it is opened: by `keeve serve`, or by a command that has a store to itself.

Flags, variables and a TOML file are read into `ServerSettings` (`settings_from`; `shown` gives them with where each
came from, `HOW` what each is), of which its models and its vault come (`models_of`, `named`, `vault_of`), and what
sessions begin with (`begins_with`), or began with (`began_with`,
`may_have_begun_with`).
"""

from keeve.settings.beginning import NoSuchModel, began_with, begins_with, may_have_begun_with
from keeve.settings.credentials import vault_of
from keeve.settings.models import answering, model_names, model_shown, models_of, named
from keeve.settings.settings import (
    HOW,
    TABLES,
    VERBS,
    BadServerSetting,
    CredentialSource,
    LoadedSettings,
    ModelSource,
    PrincipalFile,
    ServerSettings,
    settings_from,
    shown,
)

__all__ = [
    "HOW",
    "TABLES",
    "VERBS",
    "BadServerSetting",
    "CredentialSource",
    "LoadedSettings",
    "ModelSource",
    "NoSuchModel",
    "PrincipalFile",
    "ServerSettings",
    "answering",
    "began_with",
    "begins_with",
    "may_have_begun_with",
    "model_names",
    "model_shown",
    "models_of",
    "named",
    "settings_from",
    "shown",
    "vault_of",
]
