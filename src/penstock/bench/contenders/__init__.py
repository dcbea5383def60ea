"""Who is measured: one module per way to run a workload, each in a process of its own."""
