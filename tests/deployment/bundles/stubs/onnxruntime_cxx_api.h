// The part of onnxruntime's C++ API that generated code uses, as declarations: it compiles, and does not run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>
enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16
};
enum OrtLoggingLevel { ORT_LOGGING_LEVEL_WARNING = 2 };
enum OrtAllocatorType { OrtArenaAllocator = 1 };
enum OrtMemType { OrtMemTypeDefault = 0 };
namespace Ort {
struct Float16_t { uint16_t val; };
struct BFloat16_t { uint16_t val; };
struct SessionOptions {};
struct RunOptions { explicit RunOptions(std::nullptr_t); };
struct Env { Env(OrtLoggingLevel, const char*); };
struct MemoryInfo { static MemoryInfo CreateCpu(OrtAllocatorType, OrtMemType); };
struct TensorTypeAndShapeInfo {
  ONNXTensorElementDataType GetElementType() const;
  std::size_t GetElementCount() const;
  std::vector<int64_t> GetShape() const;
};
struct Value {
  static Value CreateTensor(const MemoryInfo&, void*, std::size_t, const int64_t*, std::size_t, ONNXTensorElementDataType);
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const;
  const void* GetTensorRawData() const;
};
struct Session {
  Session(const Env&, const char*, const SessionOptions&);
  std::vector<Value> Run(const RunOptions&, const char* const*, const Value*, std::size_t, const char* const*, std::size_t);
};
}  // namespace Ort
