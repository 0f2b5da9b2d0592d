"""How often published intervals cover the exact number, and how good stated errors are."""
