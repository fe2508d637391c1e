"""Pages: a surface that people use in a browser. It asks ``queries`` and ``operations``, and decides nothing.

``guard`` stands before every view, ``tags`` are the words of the templates, and there is a module for every noun.
"""
