"""Northwind, the stand-in company: orders, staff, policy, payments, mail and a model on loopback.

It speaks the wire formats of real systems (JSON over HTTP, Stripe's API, SMTP, chat completions)
and can be told to fail, so that the refund agent runs the same adapters here and in production. It
imports nothing of the agent: it stands for the outside world.
"""
