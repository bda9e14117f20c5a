"""Reporting: one table of all recipes, and its place in the README."""
