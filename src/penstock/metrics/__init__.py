"""What running queries report."""
