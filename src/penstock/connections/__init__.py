"""Addresses with their auth, declared once in `penstock.yaml` and shared by name."""
