"""Runtime libraries: put together on the user's machine from official packages, checked as a set."""
