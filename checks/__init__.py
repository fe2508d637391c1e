"""Every check of the project by one command: ``python -m checks``."""
