"""`h5mirror web`: a page that shows the files of a server, their versions, and their contents.

docs/design/045-web.md tells the tasks of each process, and which ones trust each other.
The extra h5mirror[web] brings the packages that it needs.
"""
