"""The SDK's runtime for our commands: it logs nothing."""

from functools import cache

from temporalio.runtime import Runtime, TelemetryConfig


@cache
def quiet_runtime() -> Runtime:
    """One for all clients of a process: each runtime has threads of its own.

    The usual one writes its warnings to standard output, among what a command prints for machines;
    what it would say comes to us as an error anyway.
    """
    return Runtime(telemetry=TelemetryConfig(logging=None))
