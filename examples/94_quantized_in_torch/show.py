import onnx

model = onnx.load("net.onnx")
for tensor in model.graph.initializer:
    if len(tensor.dims) == 2 and tensor.data_type == onnx.TensorProto.INT4 and tensor.dims[0] > 4:
        print(list(tensor.dims), onnx.TensorProto.DataType.Name(tensor.data_type))
