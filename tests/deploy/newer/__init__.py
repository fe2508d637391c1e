"""A version of Waypost that nobody has released: runs have one column more. It stands for "the next version"."""
