"""The least error that a privacy promise allows, whatever the mechanism or within a stated class."""
