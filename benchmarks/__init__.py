"""What a step costs: measurements of this project, of the bare databases, and of other durable engines.

``python -m benchmarks`` runs all of them (see ``__main__``). Every engine is measured in a process of its own on a
database of its own, and the raw floor of that database is measured between its repetitions, so a loaded machine slows
both alike.
"""
