"""Rows to tables, fits and findings: numbers and values, never words."""
