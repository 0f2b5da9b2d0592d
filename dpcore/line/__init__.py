"""The privacy line: what is exact, what is noisy, and the one function between them."""
