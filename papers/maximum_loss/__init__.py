"""The largest loss over pairs of inputs (Askin, Kutta & Dette 2022); no plan reaches it."""
