"""What an export is given: the module, example inputs, and which axes are dynamic."""
