"""The home folder, the folder of plans, Prefect steps and notices."""
