"""Tests of JSON values."""
