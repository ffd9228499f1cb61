"""The tools of the tests of whole programs. Start at site.py."""
