"""Small files on any file system that Hadoop knows, under the name by which the engine knows it."""

from penstock.hadoop_storage import HadoopStorage

__all__ = ["HadoopStorage"]
