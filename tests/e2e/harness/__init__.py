"""What the tests of whole programs are written with. Start at site.py."""
