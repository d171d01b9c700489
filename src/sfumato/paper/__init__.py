"""The paper's figures and its table, one module each, next to what the software does better.

Import the modules themselves: drawing needs the extra ``charts``.
"""
