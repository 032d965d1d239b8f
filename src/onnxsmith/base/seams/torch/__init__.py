"""What onnxsmith asks of torch beyond its public interface, a file for each purpose. Imports torch."""
