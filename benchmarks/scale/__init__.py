"""How time, memory and error grow: measurements with a plot each."""
