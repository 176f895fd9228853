"""Settings: defaults that fit one machine, and one clear line where something is wrong."""

from pathlib import Path

import pytest

from workers.settings import Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have keys of their own."""
    for name in (
        "STRIPE_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "NORTHWIND_ENVIRONMENT",
        "NORTHWIND_DRILL_SOCKET",
        "NORTHWIND_DEPLOYMENT",
        "NORTHWIND_BUILD_ID",
    ):
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_fit_one_machine() -> None:
    """No key and no address need to be set for the stand-in company."""
    settings = load_settings()
    assert settings.environment == "local"
    assert settings.keys_dir == Path(".northwind/keys")
    assert settings.payments_url == settings.company_url
    assert settings.model_base_url == f"{settings.company_url}/v1"
    assert settings.payment_key == "sk_test_northwind"
    assert settings.model == "northwind-stand-in-rules"
    assert settings.model_key
    assert settings.ledger_url.get_secret_value() == "sqlite:///.northwind/ledger.db"


def test_places_follow_the_folder_and_the_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable moves all that lies below it."""
    monkeypatch.setenv("NORTHWIND_DATA_DIR", "/data")
    monkeypatch.setenv("NORTHWIND_COMPANY_URL", "http://company:8080/")
    settings = load_settings()
    assert settings.keys_dir == Path("/data/keys")
    assert settings.ledger_url.get_secret_value() == "sqlite:////data/ledger.db"
    assert settings.payments_url == "http://company:8080"
    assert settings.model_base_url == "http://company:8080/v1"


ALLOWED = [
    ("local", "sk_test_1", True),
    ("staging", "rk_test_1", True),
    ("production", "sk_live_1", True),
    ("production", "rk_live_1", True),
    ("local", "sk_live_1", False),
    ("staging", "rk_live_1", False),
    ("local", "something", False),
    ("production", "sk_test_1", False),
    ("production", "sk_test_northwind", False),
]


@pytest.mark.parametrize(("environment", "key", "allowed"), ALLOWED)
def test_live_keys_are_for_production_and_test_keys_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, environment: str, key: str, *, allowed: bool
) -> None:
    """A trial moves no money, and production does not pretend to."""
    monkeypatch.setenv("NORTHWIND_ENVIRONMENT", environment)
    monkeypatch.setenv("STRIPE_API_KEY", key)
    if allowed:
        assert load_settings().payment_key == key
        return
    with pytest.raises(SettingsError, match="STRIPE_API_KEY") as raised:
        load_settings()
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "payments_url"), [("staging", "http://company:1"), ("local", "stripe")]
)
def test_the_sandboxs_key_is_for_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, environment: str, payments_url: str
) -> None:
    """Elsewhere a key must be set; but the command, which pays nothing, can do without."""
    monkeypatch.setenv("NORTHWIND_ENVIRONMENT", environment)
    monkeypatch.setenv("NORTHWIND_PAYMENTS_URL", payments_url)
    settings = load_settings()
    with pytest.raises(SettingsError, match="STRIPE_API_KEY"):
        _ = settings.payment_key


@pytest.mark.parametrize("payments_url", ["", "stripe"])
def test_stripe_itself_is_named_or_left_empty(
    monkeypatch: pytest.MonkeyPatch, payments_url: str
) -> None:
    """Both mean the provider's own address."""
    monkeypatch.setenv("NORTHWIND_PAYMENTS_URL", payments_url)
    assert load_settings().at_stripe


@pytest.mark.parametrize(
    ("provider", "other", "place"),
    [
        ("openai", "ANTHROPIC_API_KEY", ""),
        ("anthropic", "OPENAI_API_KEY", None),
        # The stand-in company does not speak this form.
        ("anthropic", "OPENAI_API_KEY", "http://127.0.0.1:8700"),
    ],
)
@pytest.mark.parametrize("missing", [None, ""])
def test_another_model_needs_a_name_and_a_key_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    other: str,
    place: str | None,
    missing: str | None,
) -> None:
    """The stand-in takes any key; each provider takes its own, and nobody else's is sent to it."""
    monkeypatch.setenv("NORTHWIND_MODEL_PROVIDER", provider)
    monkeypatch.setenv(other, "another provider's")
    own = f"{provider.upper()}_API_KEY"
    for name, value in (("NORTHWIND_MODEL_BASE_URL", place), (own, missing)):
        if value is not None:
            monkeypatch.setenv(name, value)
    settings = load_settings()
    with pytest.raises(SettingsError, match="NORTHWIND_MODEL_NAME"):
        _ = settings.model
    with pytest.raises(SettingsError, match=own):
        _ = settings.model_key
    monkeypatch.setenv(own, "its own")
    monkeypatch.setenv("NORTHWIND_MODEL_NAME", "a-model")
    assert (load_settings().model, load_settings().model_key) == ("a-model", "its own")


def test_anthropics_api_is_at_anthropic_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The company's address is none of its form; another one can be named."""
    monkeypatch.setenv("NORTHWIND_MODEL_PROVIDER", "anthropic")
    assert load_settings().model_base_url == ""
    monkeypatch.setenv("NORTHWIND_MODEL_BASE_URL", "http://gateway/")
    assert load_settings().model_base_url == "http://gateway"


WRONG = [
    ("NORTHWIND_COMPANY_URL", "company:8080"),
    ("NORTHWIND_COMPANY_URL", "http://"),
    ("NORTHWIND_PAYMENTS_URL", "Stripe"),
    ("NORTHWIND_MODEL_PROVIDER", "oracle"),
    ("NORTHWIND_MODEL_BASE_URL", "api.example"),
    ("NORTHWIND_ENVIRONMENT", "my house"),
    ("NORTHWIND_MAIL_FROM", "nobody"),
    ("NORTHWIND_SMTP_URL", "mail.example:25"),
    ("NORTHWIND_SMTP_URL", "smtp://mail.example:99999"),
    ("NORTHWIND_SMTP_URL", "smtp://me:s3cret@mail.example"),
    ("NORTHWIND_SMTP_URL", "ftp://me:s3cret@mail.example"),
    # What Temporal itself refuses, at the first poll only.
    ("NORTHWIND_DEPLOYMENT", "refunds.2"),
    ("NORTHWIND_DEPLOYMENT", "__refunds"),
    ("NORTHWIND_BUILD_ID", "2:1"),
    ("NORTHWIND_BUILD_ID", "__2"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Name and reason, once; no password."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as raised:
        load_settings()
    words = str(raised.value)
    assert words.count("NORTHWIND_") == 1
    assert words.startswith(f"{name}: ")
    assert "\n" not in words
    assert "s3cret" not in words


def test_a_drill_may_hold_workers_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens there can stop a worker in the middle of a refund."""
    monkeypatch.setenv("NORTHWIND_DRILL_SOCKET", "/run/drill.sock")
    assert load_settings().drill_socket == Path("/run/drill.sock")
    for environment in ("staging", "production"):
        monkeypatch.setenv("NORTHWIND_ENVIRONMENT", environment)
        with pytest.raises(SettingsError) as raised:
            load_settings()
        assert str(raised.value) == "NORTHWIND_DRILL_SOCKET: for environment local only"


def test_a_version_has_both_its_names_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with half of one would poll without a version, and get what others shall have."""
    assert (load_settings().deployment, load_settings().build_id) == ("", "")
    monkeypatch.setenv("NORTHWIND_DEPLOYMENT", "refunds")
    with pytest.raises(SettingsError, match="set both, or neither"):
        load_settings()
    given = load_settings(build_id="2.1-rc1")
    assert (given.deployment, given.build_id) == ("refunds", "2.1-rc1")
    monkeypatch.setenv("NORTHWIND_BUILD_ID", "2")
    assert load_settings(deployment="others").deployment == "others"


def test_a_password_goes_over_tls_or_stays_on_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All three ways to a mail server, each with what it allows."""
    for url in (
        "smtp://me:s3cret@127.0.0.1:25",
        "smtps://me:s3cret@mail.example",
        "smtp+starttls://me:s3cret@mail.example:587",
        "smtp://mail.example",
    ):
        monkeypatch.setenv("NORTHWIND_SMTP_URL", url)
        assert load_settings().smtp_url.get_secret_value() == url


def test_settings_show_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """R54: printed or logged, they hold none."""
    monkeypatch.setenv("STRIPE_API_KEY", "sk_test_s3cret")
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    monkeypatch.setenv("NORTHWIND_SMTP_URL", "smtps://me:s3cret@mail.example")
    monkeypatch.setenv("NORTHWIND_LEDGER_URL", "postgresql://me:s3cret@db/ledger")
    settings = Settings()
    assert "s3cret" not in f"{settings!r} {settings} {settings.model_dump_json()}"
