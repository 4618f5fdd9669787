"""Readers of models of other libraries."""
