"""Grids of jobs: planned, measured cell by cell, resumed."""
