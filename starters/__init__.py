"""The `refund` command: everything that talks to a Temporal client."""
