"""Charts as SVG: marks, axes, panels."""
