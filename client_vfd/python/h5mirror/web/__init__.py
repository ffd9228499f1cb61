"""`h5mirror web`: a page that shows the files of a server, their versions, and what is in them.

docs/design/045-web.md says which process does what, and who trusts whom. The extra h5mirror[web] brings what it needs.
"""
