"""Cost and accuracy of a plan, and the budget for a wanted accuracy, without opening data."""
