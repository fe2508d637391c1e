"""The crash kit: kills a driver at the writes of a run and compares its end with that of a run nobody disturbed.

``python -m tests.crashes CASE… | --all`` (see ``__main__``). How it works, from the inside out:

* ``recorder.sh`` runs the program of a shell step and notes in the effect's own log when it began and what it did;
* ``moments`` watches a process from outside (cursors, commits, effects) and kills it at a chosen moment;
* ``scenarios`` are the cases of the product and those of ``tests/crashes/cases``: people side by side, child runs,
  shared places, concurrency keys, forks;
* ``family`` finds the runs of an attack, ``people`` say in them what the case says;
* ``life`` is what one process does: start the runs, drive them, do what people do, reconcile what is parked from the
  effect's log;
* ``ends`` reads how a run ended and what a dead driver left open;
* ``attacks`` forks the lives of an attack, one after the death of the other, and compares;
* ``choosing`` says which points are worth a kill, ``files`` attacks one case.
"""
