"""Amplifier's context manager on Palimpsest. It keeps every message, and gives requests a view within a limit."""

from .mount import mount

__amplifier_module_type__ = "context"
__all__ = ["mount"]
