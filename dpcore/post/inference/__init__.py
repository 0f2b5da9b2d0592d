"""What noisy tables and the records that follow them say of a population, with errors that hold."""
