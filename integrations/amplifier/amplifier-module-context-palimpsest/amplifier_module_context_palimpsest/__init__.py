"""Amplifier's context manager on Palimpsest: every message is kept, requests get a view within a limit."""

from .mount import mount

__amplifier_module_type__ = "context"
__all__ = ["mount"]
