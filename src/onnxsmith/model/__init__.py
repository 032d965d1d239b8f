"""The graph: loading, checking, reading and saving ONNX models, on onnx-ir. The only room that imports `onnx`."""
