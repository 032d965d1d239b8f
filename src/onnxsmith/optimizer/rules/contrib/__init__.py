"""Rules that make operators of onnxruntime (domain com.microsoft). They run only on request."""
