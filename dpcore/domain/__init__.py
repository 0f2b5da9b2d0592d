"""The public coding of a survey: columns, cells, regions, neighbours, and tallies over them."""
