"""The mathematics of dprelease: no files, no clock, no database, no Prefect."""
