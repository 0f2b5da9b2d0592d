"""An agency's year in half an hour: everything runs, everything is killed, and nothing may be lost."""
