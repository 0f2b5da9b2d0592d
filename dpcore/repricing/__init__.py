"""The total price of a list of past events, by several accountants: for reports, never for charging."""
