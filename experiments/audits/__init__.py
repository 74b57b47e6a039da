"""Audits of the promise that equal seeds give equal texts."""
