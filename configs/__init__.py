"""Configurations: one file for each experiment."""
