"""For the tests of users: what they wrote for Spark, tried without a stream."""

from penstock.testing.processor_tester import ProcessorTester

__all__ = ["ProcessorTester"]
