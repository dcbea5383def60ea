"""From a project to queries that are ready: resolve, probe, judge, build."""
