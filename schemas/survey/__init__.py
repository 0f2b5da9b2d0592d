"""The parts of a plan that describe its survey: location, columns, privacy unit and checks."""
