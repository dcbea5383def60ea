"""All pipelines of a project as one graph: what one writes and another reads joins them. Without Spark."""
