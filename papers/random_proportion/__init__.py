"""A count under random differential privacy, exact near its ends (Hall 2012, section 5.2.2)."""
