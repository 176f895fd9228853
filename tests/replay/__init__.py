"""Histories of every released version, and the gate that replays them against the code here."""
