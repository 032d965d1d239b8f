"""Shape arithmetic that follows from what is known of the dimensions."""
