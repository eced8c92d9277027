"""Where in a graph the NPU's numbers part from the float model's: the first wrong tensor, and the node to blame.

`survey` writes the graph as the compiler gets it and lists its nodes and tensors; `plan` and `search` (pure) choose
what to look at; `measure` compiles one stretch of the graph, runs it on the emulator and compares; `find` puts these
together, each compile in a child of its own; `verdict` says the result in words.
"""
