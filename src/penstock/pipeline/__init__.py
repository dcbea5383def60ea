"""The model: what a project and its pipelines are, and the two ways to write one."""
