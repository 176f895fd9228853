"""What is wrong with a docker-compose file, in sentences; no engine is needed to find it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from temporalio.envconfig import ClientConfigProfile

from workers.settings import Settings

ROOT = Path(__file__).parents[1]
OWN_IMAGE = "northwind-refund-agent"
DEFINED = ("networks", "volumes", "configs")
SECRET = re.compile(r"PASSWORD|PWD|SECRET|TOKEN|API_KEY")
REQUIRED = re.compile(r"\$\{\w+:\?[^}]+\}")
REFERENCE = re.compile(r"(?<!\$)\$(?:\{[^}]*\}|\w+)")

Service = Mapping[str, Any]


def mistakes(text: str) -> list[str]:
    """Return what is wrong with the text of a compose file that fits the schema of such files."""
    compose = yaml.safe_load(text)
    found = [
        f"{reference} may be empty: write ${{NAME:?how to make it}}"
        for reference in REFERENCE.findall(text)
        if not REQUIRED.fullmatch(reference)
    ]
    found += _undefined(compose)
    found += _unhealthy(compose["services"])
    for name, service in compose["services"].items():
        for check in (_open_ports, _floating_image, _known_secrets):
            found += [f"{name}: {mistake}" for mistake in check(service)]
        if service.get("image") == OWN_IMAGE:
            found += [f"{name}: {mistake}" for mistake in _unknown_variables(service)]
            found += [f"{name}: {mistake}" for mistake in _unknown_commands(service)]
    return found


def own_environments(text: str, password: str) -> dict[str, dict[str, str]]:
    """Return the environment of each service that runs our code, with `password` filled in."""
    services = yaml.safe_load(text)["services"]
    return {
        name: {key: REQUIRED.sub(password, value) for key, value in _environment(service).items()}
        for name, service in services.items()
        if service.get("image") == OWN_IMAGE
    }


def scripts(text: str) -> dict[str, str]:
    """Return the shell script of each service that is one, as its shell gets it."""
    return {
        name: service["command"][0].replace("$$", "$")
        for name, service in yaml.safe_load(text)["services"].items()
        if service.get("entrypoint", [])[:1] == ["sh"]
    }


def _environment(service: Service) -> dict[str, str]:
    return dict(service.get("environment", {}))


def _undefined(compose: Mapping[str, Any]) -> Iterator[str]:
    """Yield what services name and nobody defines."""
    for name, service in compose["services"].items():
        for target in service.get("depends_on", {}):
            if target not in compose["services"]:
                yield f"{name}: depends on {target}, which does not exist"
        for kind in DEFINED:
            for entry in service.get(kind, []):
                source = entry["source"] if isinstance(entry, dict) else entry.partition(":")[0]
                if source not in compose.get(kind, {}):
                    yield f"{name}: {source} is not among the {kind}"


def _unhealthy(services: Mapping[str, Service]) -> Iterator[str]:
    """Yield services that run on and have no health check, or whose health nobody could know."""
    waited_for = [
        (target, how["condition"])
        for service in services.values()
        for target, how in service.get("depends_on", {}).items()
    ]
    ends = {target for target, how in waited_for if how == "service_completed_successfully"}
    for name, service in services.items():
        if name not in ends and "profiles" not in service and "healthcheck" not in service:
            yield f"{name}: runs on and has no healthcheck"
        if (name, "service_healthy") in waited_for and "healthcheck" not in service:
            yield f"{name}: its health is waited for and it has no healthcheck"


def _open_ports(service: Service) -> Iterator[str]:
    if service.get("network_mode") == "host":
        yield "shares the host's network"
    for port in service.get("ports", []):
        host = port.get("host_ip") if isinstance(port, dict) else str(port).rpartition(":")[0]
        if host is None or not re.fullmatch(r"127\.0\.0\.1(:\d+)?", host):
            yield f"port {port} is published beyond 127.0.0.1"


def _floating_image(service: Service) -> Iterator[str]:
    if "build" not in service and not re.search(r":\d+\.\d+[\w.-]*$", service["image"]):
        yield f"image {service['image']} names no version"


def _known_secrets(service: Service) -> Iterator[str]:
    for key, value in _environment(service).items():
        if SECRET.search(key) and not REQUIRED.fullmatch(value):
            yield f"{key} is a secret that a stranger knows"


def _unknown_variables(service: Service) -> Iterator[str]:
    prefix = str(Settings.model_config["env_prefix"])
    known = {
        str(field.validation_alias or f"{prefix}{name}".upper())
        for name, field in Settings.model_fields.items()
    }
    nothing = ClientConfigProfile.load(disable_file=True, override_env_vars={}).to_dict()
    for key, value in _environment(service).items():
        profile = ClientConfigProfile.load(disable_file=True, override_env_vars={key: value})
        if key not in known and profile.to_dict() == nothing:
            yield f"{key} is read by neither the settings nor Temporal's SDK"


def _unknown_commands(service: Service) -> Iterator[str]:
    start = [*service.get("entrypoint", []), *service.get("command", [])]
    health = service.get("healthcheck", {}).get("test", [])
    for argv in (start, health[1:]):
        if argv:
            yield from _unknown_parts([str(part) for part in argv])


def _unknown_parts(argv: list[str]) -> Iterator[str]:
    """Hold a command line against the help of the program that it starts."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    if argv[:2] == ["python", "-c"]:
        compile(argv[2], "healthcheck", "exec")
        return
    program: tuple[str, ...]
    if argv[:2] == ["python", "-m"]:
        program, options = ("-m", argv[2]), argv[3:]
    elif argv[0] in scripts:
        module, _, function = scripts[argv[0]].partition(":")
        command = [part for part in argv[1:2] if not part.startswith("-")]
        program = ("-c", f"import sys, {module}; sys.exit({module}.{function}())", *command)
        options = argv[1:]
    else:
        yield f"{argv[0]} is no command of the project"
        return
    shown = _help(program)
    if shown is None:
        yield f"{' '.join(argv[:3])} is no command of the project"
        return
    for option in options:
        if option.startswith("--") and not re.search(rf"{option}(?![\w-])", shown):
            yield f"{argv[0]} knows no {option}"


@cache
def _help(program: tuple[str, ...]) -> str | None:
    """Return the help of a Python program, or None where there is none."""
    done = subprocess.run(
        [sys.executable, *program, "--help"],
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout if done.returncode == 0 else None
