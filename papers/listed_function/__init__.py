"""The nearest of some public functions (Hall, Rinaldo & Wasserman 2013, section 3.2)."""
