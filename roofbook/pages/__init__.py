"""Runs and templates to finished pages: the only package that knows Jinja, and nothing of mkdocs."""
