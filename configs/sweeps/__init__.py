"""Configurations of sweeps, one for each figure."""
