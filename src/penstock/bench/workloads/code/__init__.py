"""What users keep in modules of their project: the workloads put these texts there."""
