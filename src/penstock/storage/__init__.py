"""Small files on a local disk or any Hadoop file system, behind one narrow face."""
