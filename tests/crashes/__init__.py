"""The crash kit: kills a driver at every write of a run and compares its end with that of a run nobody disturbed.

``python -m tests.crashes CASE… | --all`` (see ``__main__``). How it works, from the inside out:

* ``recorder`` runs the program of a shell step and notes in the effect's own log when it began and what it did;
* ``moments`` watches a driver from outside (cursors, commits, effects) and kills it at a chosen moment;
* ``life`` is what one driver process does: start the run, drive it, reconcile what is parked from the effect's log;
* ``ends`` reads how a run ended and what a dead driver left open;
* ``attacks`` forks the lives of an attack, one after the death of the other, and compares.
"""
