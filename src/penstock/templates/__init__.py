"""Projects that `penstock init` and `penstock demo` copy."""
