"""Models and what they need: formulas, the evidence of a release, and fits with errors that hold."""
