"""What the messages of torch, onnx and the runtimes mean, one cause a file. `base.recognise` asks them all."""
