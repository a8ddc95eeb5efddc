"""Functions whose text fixes their cost, over many decades of work and memory, and edits of them.

A seed goes in; :mod:`.generator` draws specifications of programs from the templates and :mod:`.rendering` writes them
as modules; :mod:`.measuring` measures them into a label file. The builder of the parent package makes the rows.
"""
