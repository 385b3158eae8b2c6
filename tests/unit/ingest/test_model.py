"""Ingest decides as the model does, under every interleaving that Hypothesis finds."""

from hypothesis import settings

from tests.unit.ingest.log_machine import LogMachine

TestDecisions = LogMachine.TestCase
TestDecisions.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
