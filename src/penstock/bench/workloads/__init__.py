"""What is measured: one module per workload."""
