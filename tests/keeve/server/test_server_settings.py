"""What a server is told: by flags, by the environment, by a file, in this order; and what is shown of it."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from keeve.cli.serve import Flags
from keeve.server.listening import tls
from keeve.settings import (
    HOW,
    TABLES,
    BadServerSetting,
    CredentialSource,
    PrincipalFile,
    ServerSettings,
    models_of,
    settings_from,
)
from tests.cli_runner import ROOT, keeve
from tests.server_certificates import certificate


def test_flags_count_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('port = 1\nhost = "::1"\ngrace = 1.5\nhosts = ["a.example", "b.example"]\n')
    environ = {"KEEVE_SERVER_PORT": "2", "KEEVE_SERVER_HOST": "127.0.0.2", "OTHER": "x"}
    settled = settings_from({"port": 3, "host": None}, environ, file)
    settings = settled.settings
    assert (settings.port, settings.host, settings.grace) == (3, "127.0.0.2", 1.5)
    assert settings.hosts == ("a.example", "b.example")
    sources = [settled.sources[name] for name in ("port", "host", "grace", "store")]
    assert sources == ["flag", "environment", f"file {file}", "default"]


def test_every_setting_has_a_flag_and_says_what_it_is() -> None:
    names = {field.name for field in attrs.fields(ServerSettings)} - set(TABLES)
    assert names == set(HOW)
    assert {field.name for field in attrs.fields(Flags)} == names - {"store"}
    said = " ".join(keeve("serve", "--help", env={"COLUMNS": "200"}).out.split())
    assert all(f"--{name.replace('_', '-')}" in said for name in names - {"store"})
    assert "Another origin" not in said
    assert "Other origins whose pages may ask (https://app.example); may be given several times." in said


def test_the_page_has_every_setting_with_its_default_and_what_it_is() -> None:
    page = (ROOT / "docs" / "server.md").read_text().partition("| setting | default | |\n|---|---|---|\n")[2]
    rows = [line.strip("| ").split(" | ") for line in page.partition("\n\n")[0].splitlines()]
    assert [name.strip("`") for name, *_ in rows] == list(HOW)
    for name, default, what in rows:
        value = getattr(ServerSettings(), name.strip("`"))
        assert default.strip("`") == ("none" if value in (None, ()) else str(value)), name
        plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", what).replace("`", "")
        assert plain.startswith(HOW[name.strip("`")][1]), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 1", "there is no such setting"),
        ("port = 99999", "0 to 65535"),
        ('port = "x"', "0 to 65535"),
        ("port = true", "0 to 65535"),
        ("grace = 0", "more than 0"),
        ('log = "xml"', "none of text, json"),
        ('host = ""', "not a text"),
        ('tls_cert = "x.pem"', "both"),
        ("port = ", "not TOML"),
        ("[principals]\nann = 1", "a table for each"),
        ("[principals.ann]\n", "not a text"),
        ('[principals.ann]\ntoken_file = "x"\nverbs = ["fly"]', "none of read"),
        ('[principals.ann]\ntoken = "x"', "has no token"),
        ('[models.m]\nurl = "http://x/v1"\nkey = "sk-secret-of-mine!"', "name of the variable"),
        ('[credentials]\nshop = "sk-secret-of-mine!"', r"a table for each: \[credentials.NAME\]"),
        ("[credentials.shop]", 'variable = "NAME", or file = "PATH"'),
        ('[credentials.shop]\nvariable = "A"\nfile = "a"', 'variable = "NAME", or file = "PATH"'),
        ('[credentials.shop]\nvalue = "sk-secret-of-mine!"', "it has no value; it has variable, file"),
        ('[credentials.shop]\nvariable = "sk-secret-of-mine!"', "name of the variable"),
        ('[credentials.shop]\nfile = "sk-secret\\nof-mine"', "path of the file"),
        ('[credentials.shop]\nfile = ["sk-secret"]', "path of the file"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "server.toml"
    file.write_text(text)
    with pytest.raises(BadServerSetting, match=said) as refused:
        settings_from({}, {}, file)
    assert "sk-secret" not in str(refused.value)


def test_a_variable_that_is_none_is_refused() -> None:
    with pytest.raises(BadServerSetting, match="KEEVE_SERVER_PROT"):
        settings_from({}, {"KEEVE_SERVER_PROT": "1"})


def test_a_value_says_which_variable_it_is_from() -> None:
    with pytest.raises(BadServerSetting, match="KEEVE_SERVER_PORT"):
        settings_from({}, {"KEEVE_SERVER_PORT": "x"})
    settled = settings_from({"actors": ["shop"]}, {"KEEVE_ACTORS": "shop"})
    assert settled.sources["actors"] == "KEEVE_ACTORS"
    assert settings_from({"actors": ["other"]}, {"KEEVE_ACTORS": "shop"}).sources["actors"] == "flag"


def test_the_store_that_a_flag_or_a_variable_names_counts_in_the_order_that_the_docs_say(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('store = "filed"\n')
    flag, everywhere, own = {"store": Path("flagged")}, {"KEEVE_STORE": "all"}, {"KEEVE_SERVER_STORE": "served"}
    for flags, environ, store, source in (
        (flag, everywhere | own, "flagged", "flag"),
        ({}, own | everywhere, "all", "KEEVE_STORE"),
        ({}, own, "served", "environment"),
        ({}, {}, str(tmp_path / "filed"), f"file {file}"),
    ):
        settled = settings_from(flags, environ, file)
        assert (str(settled.settings.store), settled.sources["store"]) == (store, source)
    assert settings_from({}, {"KEEVE_STORE": ""}).sources["store"] == "default"


def test_paths_of_a_file_are_relative_to_its_folder_from_wherever_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('store = "data"\nsigner = "/keys/log.pem"\n[principals.ann]\ntoken_file = "ann.token"\n')
    settings = settings_from({}, {}, file).settings
    assert (settings.store, settings.signer) == (tmp_path / "data", Path("/keys/log.pem"))
    assert settings.principals["ann"].token_file == tmp_path / "ann.token"
    assert settings_from({"store": Path("mine")}, {}, file).settings.store == Path("mine")
    assert settings_from({}, {"KEEVE_SERVER_STORE": "mine"}, file).settings.store == Path("mine")


def test_principals_have_their_tokens_in_files(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('[principals.ann]\ntoken_file = "ann.token"\nverbs = ["read"]\n')
    settings = settings_from({}, {}, file).settings
    assert settings.principals == {"ann": PrincipalFile("ann", tmp_path / "ann.token", ("read",), f"file {file}")}


def test_credentials_are_named_where_they_are_and_a_file_of_them_is_beside_that_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('[credentials.shop]\nvariable = "SHOP_KEY"\n[credentials.bank]\nfile = "bank.key"\n')
    settings = settings_from({}, {}, file).settings
    assert settings.credentials == {
        "shop": CredentialSource("shop", "SHOP_KEY", None, f"file {file}"),
        "bank": CredentialSource("bank", None, tmp_path / "bank.key", f"file {file}"),
    }


def test_what_is_in_force_is_shown_with_its_source_and_without_secrets(store_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(
        '[models.small]\nurl = "https://me:hunter2@models.example/v1?key=hunter2#hunter2"\nkey = "SOME_KEY"\n'
        '[principals.ann]\ntoken_file = "ann.token"\n'
        '[credentials.shop]\nvariable = "SHOP_KEY"\n[credentials.bank]\nfile = "bank.key"\n'
    )
    (tmp_path / "bank.key").write_text("sk-0123456789")
    env = {"SHOP_KEY": "sk-0123456789", "KEEVE_SERVER_PORT": "9000", "SOME_KEY": "sk-0123456789"}
    said = keeve("config", store_folder / "s", "--config", file, "--grace", "3", "--json", env=env)
    shown = {each["name"]: (each["value"], each["source"]) for each in said.json["settings"]}
    assert shown["port"] == (9000, "environment")
    assert shown["grace"] == (3.0, "flag")
    assert shown["host"] == ("127.0.0.1", "default")
    assert shown["models"][0]["small"]["url"] == "https://models.example/v1"
    assert shown["credentials"][0]["shop"] == {"name": "shop", "variable": "SHOP_KEY", "file": None}
    assert "hunter2" not in said.out
    assert "sk-0123456789" not in said.out
    for_people = keeve("config", store_folder / "s", "--config", file, env=env)
    assert for_people.code == 0
    assert "9000" in for_people.out
    assert "url = https://models.example/v1, model = small, key = SOME_KEY\n" in for_people.out
    assert f"name = bank, file = {tmp_path / 'bank.key'}\n" in for_people.out
    assert "sk-0123456789" not in for_people.out
    assert shown["model"] == ("small at https://models.example/v1", f"file {file}")
    named = keeve(
        "config", "--config", file, env=env | {"KEEVE_MODEL": "s", "KEEVE_MODEL_URL": "http://localhost:1/v1"}
    )
    assert named.out.splitlines()[-1].split() == ["model", "environment", "s", "at", "http://localhost:1/v1"]
    assert "hunter2" not in for_people.out


@pytest.mark.parametrize("url", ["https://me:canary@a.example/v1", "ftp://a?key=canary", "canary"])
def test_a_model_whose_url_cannot_be_used_is_refused_by_its_name_and_without_a_secret(url: str, tmp_path: Path) -> None:
    """Invariant 20."""
    file = tmp_path / "server.toml"
    file.write_text(f'[models.small]\nurl = "{url}"\n')
    with pytest.raises(BadServerSetting, match=r"^models\.small \(file .*its url (is no URL|holds a user)") as caught:
        models_of(settings_from({}, {}, file).settings, {})
    assert "canary" not in str(caught.value)


def test_files_with_which_no_tls_can_be_spoken_are_refused_by_name(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = certificate(tmp_path / "other")
    secret = tmp_path / "secret.pem"
    made = load_pem_private_key(key.read_bytes(), None)
    secret.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a-password")))
    tls(cert, key)
    for given, named, said in (
        ((tmp_path / "none", key), "tls_cert (", "No such file"),
        ((cert, tmp_path / "none"), "tls_key (", "No such file"),
        ((tmp_path, key), "tls_cert (", "Is a directory"),
        ((cert, other), "tls_cert, tls_key (", "not that of the certificate"),
        ((cert, secret), "tls_key (", "encrypted"),
        ((key, cert), "tls_cert, tls_key (", "PEM"),
    ):
        with pytest.raises(BadServerSetting) as caught:
            tls(*given)
        assert str(caught.value).startswith(named)
        assert said in str(caught.value)
