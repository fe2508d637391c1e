"""The API: ``/api/v1/``, for programs with a key and for people who are logged in. It translates, and decides nothing.

A router has a file by its noun (``runs.py``) with ``router = Router(tags=["runs"])``, and one line in ``ROUTERS`` of
``api.py``. Each operation says with ``auth=Needs("operate")`` which scope a key needs; who calls is ``request.auth``
(``callers.caller_of``). Refusals are raised and become problems (``problems.py``); a look at what somebody may not see
goes through ``looking.py``. Answers that are documents already are returned with ``document``.
``python -m workflows.api`` writes ``docs/openapi.json`` anew.
"""
