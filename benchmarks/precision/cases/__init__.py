"""One file a case: a float32 model, test data with labels, and calibration data that the test data does not hold."""
