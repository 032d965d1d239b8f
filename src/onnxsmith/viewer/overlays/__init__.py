"""Turns parts of reports into figures for nodes. Each class has the name of the part that it shows."""
