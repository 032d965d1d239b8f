// The part of TensorRT's API that generated code uses, as declarations: it compiles, and does not run.
#pragma once
#include <cstddef>
#include <cstdint>
#include "cuda_runtime_api.h"
namespace nvinfer1 {
enum class DataType : int32_t { kFLOAT, kHALF, kINT8, kINT32, kBOOL, kUINT8, kFP8, kBF16, kINT64, kINT4 };
struct Dims { int32_t nbDims; int64_t d[8]; };
struct ILogger {
  enum class Severity : int32_t { kINTERNAL_ERROR, kERROR, kWARNING, kINFO, kVERBOSE };
  virtual void log(Severity, const char*) noexcept = 0;
  virtual ~ILogger() = default;
};
class IOutputAllocator {
 public:
  virtual void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) { return nullptr; }
  virtual void notifyShape(const char*, const Dims&) noexcept = 0;
  virtual ~IOutputAllocator() noexcept = default;
};
struct IExecutionContext {
  bool setOutputAllocator(const char*, IOutputAllocator*);
  bool setInputShape(const char*, const Dims&);
  bool setTensorAddress(const char*, void*);
  Dims getTensorShape(const char*) const;
  bool enqueueV3(cudaStream_t);
};
struct ICudaEngine {
  IExecutionContext* createExecutionContext();
  DataType getTensorDataType(const char*) const;
};
struct IRuntime { ICudaEngine* deserializeCudaEngine(const void*, std::size_t); };
IRuntime* createInferRuntime(ILogger&);
}  // namespace nvinfer1
