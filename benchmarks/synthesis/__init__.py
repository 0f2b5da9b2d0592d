"""How good the synthetic records of ``microdata-margins`` are on public tables."""
