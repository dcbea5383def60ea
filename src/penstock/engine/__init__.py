"""The Spark underneath: its Java, its connectors, and what each version can do."""
