"""A verified model in a folder that runs without torch: `bundle`. Forms are in `forms/`, tasks in `tasks/`, one a
file."""
