"""The largest loss over pairs of inputs (Askin, Kutta & Dette 2022).

``python -m papers.maximum_loss plan.yaml`` estimates it for every release of a plan.
"""
