# One image for the company, the workers and the command; docker-compose.yml says which runs.
FROM python:3.13-slim-trixie

WORKDIR /app

COPY requirements.lock ./
RUN pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY domain domain
COPY activities activities
COPY workflows workflows
COPY workers workers
COPY starters starters
COPY northwind northwind
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --create-home --uid 1000 northwind \
    && install --directory --owner northwind /data

USER northwind
WORKDIR /home/northwind
