"""The first plan for a table: from its columns and a questionnaire."""
