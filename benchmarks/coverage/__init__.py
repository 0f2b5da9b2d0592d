"""How often published intervals hold what they are about, and how good stated errors are."""
