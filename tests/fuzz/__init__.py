"""Made-up bad input through the public commands: never a traceback, always an id, nothing left behind.

The test run draws a fixed number of inputs of every kind, ``python -m tests.fuzz 3000 --seed 1`` as many as asked.
What was found that way is kept as a test beside the code that was at fault, with the right answer.
"""
