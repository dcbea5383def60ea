"""What runs in Spark's workers, shipped to them by value: it imports the standard library and pyspark alone."""
