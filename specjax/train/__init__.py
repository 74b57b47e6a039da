"""Training of drafters."""

__all__: list[str] = []
