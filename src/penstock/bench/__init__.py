"""Latency and throughput of pipelines, side by side with others, in one run."""
