"""What can be typed: help, bad input, and what happens when nobody is there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from starters.commands import app
from starters.draft import LOCAL_REQUESTER
from tests.starters.conftest import Typed

COMMANDS = [
    "up",
    "demo",
    "worker",
    "doctor",
    "start",
    "list",
    "show",
    "approve",
    "reject",
    "withdraw",
    "retry",
    "history",
    "replay",
    "drill",
]


def test_every_command_is_known_here() -> None:
    """The list that the other tests go through is the list of what can be typed."""
    group = typer.main.get_command(app)
    assert sorted(group.commands) == sorted(COMMANDS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
async def test_every_command_has_help_with_an_example(typed: Typed, command: str) -> None:
    """Whoever asks a command for help gets an example that can be typed."""
    done = await typed(command, "--help")
    assert done.code == 0
    assert f"refund {command}" in done.out.partition("Example:")[2]


async def test_refund_alone_prints_its_commands(typed: Typed) -> None:
    """Without a command, the user sees which there are."""
    done = await typed()
    assert done.code == 0
    assert all(f"  {command} " in done.out for command in COMMANDS)


def test_help_loads_nothing_slow() -> None:
    """`refund --help` answers at once: it loads neither the SDK nor pydantic nor rich."""
    code = (
        "import sys; from starters.cli import run; run(['--help']); "
        "print([m for m in ('temporalio', 'pydantic', 'rich', 'jwt') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "[]"


START = ("start", "--order", "8890")
LETTER = ("--message", "It came broken.")
DRILL = ("drill", "--no-matrix", "--no-hosts")
SILENT = ("approve", "8890", "--as", "maria.silva@northwind.example")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nonsense",), "nonsense"),
        (("start", *LETTER), "--order"),
        ((*START, "--no-such-option"), "--no-such-option"),
        (("start", "--order", "../8890", *LETTER), "order id"),
        (("start", "--order", "", *LETTER), "order id"),
        (("start", "--order", "8" * 65, *LETTER), "order id"),
        (START, "--message"),
        ((*START, *LETTER, "--message-file", "letter.txt"), "--message"),
        ((*START, "--message", " \n"), "empty"),
        ((*START, "--message", "a" * 20_001), "20,001 characters"),
        ((*START, "--message-file", "missing.txt"), "missing.txt"),
        ((*START, "--message-file", "."), "directory"),
        ((*START, "--message-file", "large.txt"), "too long"),
        ((*START, "--message-file", "binary.txt"), "UTF-8"),
        ((*START, *LETTER, "--amount", "0"), "zero"),
        ((*START, *LETTER, "--amount", "-1"), "no amount"),
        ((*START, *LETTER, "--amount", "1e9"), "no amount"),
        ((*START, *LETTER, "--amount", "all"), "no amount"),
        ((*START, *LETTER, "--amount", "5 ZZZ"), "ZZZ"),
        ((*START, *LETTER, "--amount", "5.001 USD"), "decimals"),
        ((*START, *LETTER, "--amount", "5.5 JPY"), "decimals"),
        ((*START, *LETTER, "--request-id", "a b"), "request id"),
        ((*START, *LETTER, "--request-id", "a", "--new-request"), "--new-request"),
        ((*START, *LETTER, "--as", "sam"), "'sam' is no mail address"),
        ((*START, *LETTER, "--as", "../../x@y"), "mail address"),
        ((*START, *LETTER, "--wait-seconds", "-1"), "--wait-seconds"),
        (("list", "--outcome", "nonsense"), "already_refunded"),
        (("list", "--limit", "0"), "--limit"),
        (("approve", "8890"), "--as"),
        ((*SILENT,), "maria.silva@northwind.example.pem"),
        (("history",), "RUN"),
        (("history", "8890", "--all"), "not both"),
        (("history", "--all"), "-o FOLDER"),
        (("history", "--all", "-o", "all", "--run-id", "1"), "--run-id"),
        (("history", "8890", "--query", 'WorkflowId = "a"'), "--query"),
        (("replay",), "--open"),
        (("replay", "8890", "--open"), "not both"),
        (("replay", "missing.json"), "missing.json"),
        (("replay", "no/such/folder"), "no/such/folder"),
        (("replay", "."), "nothing to replay"),
        (("replay", "a b"), "neither an order id"),
        (("up", "--temporal", "/no/such/program"), "--temporal PATH"),
        (("demo", "--temporal", "/no/such/program"), "--temporal PATH"),
        (("drill", "--temporal", "/no/such/program"), "--temporal PATH"),
        ((*DRILL, "--plan", "missing.json"), "missing.json"),
        ((*DRILL, "--plan", "."), "directory"),
        ((*DRILL, "--plan", "binary.txt"), "binary.txt is no plan"),
        ((*DRILL, "--plan", "other.plan"), "other.plan is no plan: name: "),
        ((*DRILL, "--run", "1000000"), "from 0 to 999999"),
        ((*DRILL, "--run", "-1"), "--run"),
        ((*DRILL, "--runs", "1000001"), "from 0 to 999999"),
        ((*DRILL, "--runs", "-1"), "--runs"),
        ((*DRILL, "--seed", "x"), "--seed"),
        ((*DRILL, "--apart", "refund.r1"), "no case of hosts apart is 'refund.r1'; one is h-"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
async def test_bad_input_ends_in_one_line(
    typed: Typed, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    """Bad input ends with exit code 2 and one line that says what is wrong, before any effect."""
    (tmp_path / "large.txt").write_text("a" * 3_000_000)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "other.plan").write_text('{"order_id": "8890"}')
    done = await typed(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert says in done.err


COMMAND = (sys.executable, "-c", "from starters.cli import main; main()")


def run_in_shell(line: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of shell in which "$@" is the command."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )


def test_a_reader_that_has_seen_enough_is_no_mistake(tmp_path: Path) -> None:
    """A pipe whose reader has gone ends with exit code 0 and without a word."""
    os.mkfifo(tmp_path / "pipe")
    done = run_in_shell(f'exec 3<>{tmp_path}/pipe 4>{tmp_path}/pipe 3<&-; "$@" --help >&4')
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_output_is_no_mistake() -> None:
    """Without any standard output a command does its work all the same."""
    done = run_in_shell('"$@" --help >&-')
    assert (done.returncode, done.stderr) == (0, "")


async def test_words_of_others_cannot_steer_the_terminal(typed: Typed) -> None:
    """Reasons may quote others; escape sequences in them are shown as dots."""
    done = await typed("list", "--outcome", "\x1b]0;title\x07")
    assert done.code == 2
    assert "·]0;title·" in done.err
    assert "\x1b" not in done.err


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port at which connections are accepted and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def closed_port() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("closed", "connection refused"),
        ("silent", "no answer within 5 seconds"),
        ("no-such-host.invalid:7233", "no host of that name"),
        (":::", "no address"),
        ("http://127.0.0.1:7233", "no address"),
    ],
)
async def test_an_unreachable_server_is_told_in_one_line(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, nobody: str, address: str, says: str
) -> None:
    """Exit code 5 and one line that names the address, who said it and what happened."""
    places = {"closed": closed_port(), "silent": nobody}
    monkeypatch.setenv("TEMPORAL_ADDRESS", places.get(address, address))
    done = await typed("list")
    assert done.code == 5
    assert len(done.err.splitlines()) == 1
    assert places.get(address, address) in done.err
    assert "TEMPORAL_ADDRESS" in done.err
    assert says in done.err


async def test_another_folder_is_told(typed: Typed, tmp_path: Path) -> None:
    """Where no `refund up` has run, each command says which folder it looked for."""
    for command in (("list",), (*START, "--message", "It came broken.")):
        done = await typed(*command)
        assert done.code in (2, 5)
        assert f"there is no {tmp_path / '.northwind'}" in done.err
        assert "NORTHWIND_DATA_DIR" in done.err


async def test_the_usual_requester_is_named(typed: Typed) -> None:
    """The help of `start` says who hands in where nobody is named."""
    assert f"[default: {LOCAL_REQUESTER}" in " ".join((await typed("start", "--help")).out.split())


async def test_a_wrong_setting_is_named(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that cannot be read ends with exit code 2 and its name."""
    monkeypatch.setenv("NORTHWIND_COMPANY_URL", "nonsense")
    done = await typed("list")
    assert done.code == 2
    assert "NORTHWIND_COMPANY_URL" in done.err


async def test_a_broken_profile_is_told(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A broken configuration file of the Temporal client ends with exit code 2."""
    broken = tmp_path / "temporal.toml"
    broken.write_text("[profile.default\n")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(broken))
    done = await typed("list")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
