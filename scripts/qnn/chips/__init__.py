"""The chips: a table of all that have an HTP, looking one up by any name, selecting some, checking all."""
